"""Tasks on Dask: on worker processes of this machine, or on those of a scheduler elsewhere.

Dask decides which worker computes what and sends the tasks of a lost worker to another one. Only
this process reads and writes the store, so that workers need no common disk.
"""

import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

from distributed import Client, KilledWorker, LocalCluster, as_completed, get_worker

from lib import engine, program, provenance
from lib.engine import Done, Task, Waiting
from lib.errors import BookError

PATIENCE = 5  # seconds until a scheduler that does not answer counts as absent
DEATHS = 100  # of workers under a task on this machine, until the task itself is to blame
RETRIES = 3  # after a scheduler elsewhere, which has its own limit, has given a task up


def check(name: str) -> None:
    """Refuse a scheduler that does not answer, and workers that would give other numbers."""
    if name == "dask":
        return
    probe = program.text({}, "from lib import trial")
    with _connected(name) as client:
        differing = client.run(difference, probe, provenance.versions(), on_error="return")
        for worker, found in differing.items():
            if isinstance(found, Exception):
                found = f"cannot load the book's code ({found})"
            _refuse(worker, found)


def difference(text: str, versions: dict[str, str]) -> str:
    """Say why this process would not compute a program as another one would, or nothing."""
    own = provenance.versions()
    for name, version in versions.items():
        if own.get(name) != version:
            return f"has {name} {own.get(name, 'not at all')}, and this run has {name} {version}"
    try:
        program.load(text)
    except BookError as error:
        return f"has another lib than this run ({str(error).rstrip('.')})"
    return ""


def _refuse(worker: str, differing: str) -> None:
    if differing:
        raise BookError(
            f"worker {worker} {differing}: install the same commit of the book there, with the "
            "versions of constraints.txt"
        )


def computed(
    name: str, waiting: Waiting, advance: Callable[[float], None]
) -> Iterator[tuple[str, Done]]:
    """Compute tasks on Dask and give each result as soon as it is here."""
    versions = provenance.versions()
    with _connected(name) as client:

        def submit(address: str):
            return client.submit(compute_checked, waiting[address], versions, pure=False)

        addresses = {submit(address): address for address in waiting}
        given_up = dict.fromkeys(waiting, 0)
        finished = as_completed(list(addresses), loop=client.loop)
        for future in finished:
            address = addresses.pop(future)
            try:
                done = future.result()
            except KilledWorker as error:
                given_up[address] += 1
                if given_up[address] > RETRIES:
                    raise BookError(
                        "A task has ended every worker that computed it, most likely for want of "
                        "memory; finished tasks are kept: give workers more, or start fewer."
                    ) from error
                again = submit(address)
                addresses[again] = address
                finished.add(again)
            except CancelledError as error:
                raise BookError(
                    f"The scheduler of {name} has gone; finished tasks are kept: start it and run "
                    "the same command again."
                ) from error
            else:
                yield address, done
                advance(waiting[address].work)


def compute_checked(task: Task, versions: dict[str, str]) -> Done:
    """Run one task on a worker, which may have joined after all others were checked."""
    _refuse(get_worker().name, difference(task.program, versions))
    return engine.compute_alone(task)


def _connected(name: str) -> Client:
    """Return a connection to the scheduler of an engine; one on this machine is started once."""
    for logger in ("distributed", "distributed.client"):  # whose errors are sentences here
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    if name == "dask":
        return Client(_local(engine.cores()), set_as_default=False)
    place = name.removeprefix("dask://")
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise BookError(f"engine {name!r} must be dask://HOST:PORT, for instance dask://node1:8786")
    try:
        with warnings.catch_warnings():  # of versions, which are checked more closely here
            warnings.simplefilter("ignore")
            return Client(f"tcp://{place}", timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise BookError(
            f"no Dask scheduler answers at {place}; start one with: dask scheduler --port {port}"
        ) from None


@functools.cache
def _local(workers: int) -> LocalCluster:
    """Start a worker process for each core; they end with this process."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # no fixed port: several pages may run at once
        memory_limit=0,  # what fits in threads fits here
        silence_logs=logging.CRITICAL,
        scheduler_kwargs={"allowed_failures": DEATHS, "dashboard": False},
    )
