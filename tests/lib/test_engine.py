"""The engines: equal bits wherever tasks run, workers that die or differ, what is limited."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

from lib import cluster, engine, program, provenance, store
from lib.engine import Task, limited, run
from lib.errors import BookError
from lib.paths import CODE


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


def draw(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((size, size))
    return {"values": np.linalg.solve(matrix @ matrix.T + np.eye(size), matrix), "size": size}


def linger(marker, number):
    for word in (f"{number}:{os.getpid()} ", "end "):
        with open(marker, "a") as file:
            file.write(word)
        time.sleep(0.15)
    return {"number": number, "process": os.getpid()}


def fail(number):
    raise ValueError(f"number {number} is not liked")


def report(parts, advance):
    for part in parts:
        advance(part)
    return {"total": sum(parts)}


report.reports_progress = True


def tasks_of(function, cases, ending="", **options):
    text = program.text({"_entry": function}, ending)
    return [Task(text, "_entry", case, **options) for case in cases]


def draws(count=6, **options):
    return tasks_of(draw, [{"seed": i, "size": 40 + i} for i in range(count)], **options)


def same(ours, theirs):
    return all(
        a.keys() == b.keys() and all(a[n].tobytes() == b[n].tobytes() for n in a)
        for a, b in zip(ours, theirs, strict=True)
    )


def entries(folder):
    return sorted(folder.glob("*/*.task"))


def test_results_come_in_the_order_of_the_tasks_and_only_missing_ones_are_computed(
    empty_store, monkeypatch
):
    first = run(draws(3), "some")
    computed = []
    original = engine.compute
    monkeypatch.setattr(
        engine, "compute", lambda task, advance: computed.append(task) or original(task, advance)
    )
    again = run([*reversed(draws(5)), draws(5)[4]], "more")
    assert [int(result["size"]) for result in again] == [44, 43, 42, 41, 40, 44]
    assert same(again[2:5], first[::-1])
    assert len(computed) == 2
    assert len(entries(empty_store)) == 5


def test_the_cost_of_every_task_is_stored(monkeypatch, tmp_path):
    (task,) = tasks_of(linger, [{"marker": str(tmp_path / "m"), "number": 1}], work=7.0)
    run([task], "slow")
    cost = store.cost(store.key(task.program, {"entry": task.entry, **task.arguments}))
    assert cost.work == 7.0
    assert cost.seconds > 0


def test_what_the_store_already_has_counts_as_time_spent_and_waiting_does_not(
    tmp_path, monkeypatch
):
    (task,) = tasks_of(linger, [{"marker": str(tmp_path / "m"), "number": 1}])
    monkeypatch.setattr(engine, "_spent", {})
    run([task], "slow")
    computed = engine.spent()
    assert 0 < computed < 0.3  # it sleeps for so long
    run([task], "asked for again")
    assert engine.spent() == computed
    monkeypatch.setattr(engine, "_spent", {})
    run([task], "found by another run")
    assert engine.spent() == pytest.approx(computed)


def test_a_function_that_reports_its_progress_is_given_a_way_to_do_so(monkeypatch, tmp_path):
    monkeypatch.setenv("REGRETBOOK_PROGRESS", str(tmp_path / "progress"))
    ending = "_entry.reports_progress = True"
    tasks = tasks_of(report, [{"parts": [1, 2, 3]}, {"parts": [5, 5]}], ending, work=100.0)
    results = run(tasks, "reports")
    assert [int(result["total"]) for result in results] == [6, 10]
    # It is the function that says how much is done, not the engine.
    last = json.loads((tmp_path / "progress").read_text().splitlines()[-1])
    assert (last["done"], last["total"]) == (16.0, 200.0)


def test_limited_computes_the_least_work_first_and_says_none_for_the_rest(empty_store):
    cases = [{"seed": i, "size": 5} for i in range(4)]
    text = program.text({"_entry": draw})
    works = [9.0, 2.0, 5.0, 2.0]
    tasks = [Task(text, "_entry", case, work) for case, work in zip(cases, works, strict=True)]
    with limited(1):
        assert [result is not None for result in run(tasks, "a")] == [False, True, False, False]
    with limited(2):
        # What is stored is given in any case.
        assert [result is not None for result in run(tasks, "b")] == [False, True, True, True]
    with limited(1), limited(0):
        assert run(tasks, "c")[0] is None
    assert all(result is not None for result in run(tasks, "d"))


def test_cores_are_those_of_the_machine_or_the_share_that_a_build_gives(monkeypatch):
    monkeypatch.delenv("REGRETBOOK_THREADS", raising=False)
    assert engine.cores() == provenance.cores()
    monkeypatch.setenv("REGRETBOOK_THREADS", "7")
    assert engine.cores() == 7


@pytest.mark.parametrize("threads", [True, False])
def test_no_more_tasks_run_at_once_than_the_share_of_cores(monkeypatch, tmp_path, threads):
    monkeypatch.setenv("REGRETBOOK_THREADS", "1")
    cases = [{"marker": str(tmp_path / "m"), "number": i} for i in range(3)]
    results = run(tasks_of(linger, cases, threads=threads, work=engine.SOON), "slow")
    words = [word.partition(":")[0] for word in (tmp_path / "m").read_text().split()]
    assert words == ["0", "end", "1", "end", "2", "end"]
    assert {int(result["process"]) for result in results} == {os.getpid()}


def test_plain_python_in_processes_gives_the_same_bits(monkeypatch, tmp_path):
    threads = run(draws(), "threads")
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "other"))
    monkeypatch.setenv("REGRETBOOK_THREADS", "2")
    assert same(run(draws(threads=False, work=engine.SOON), "processes"), threads)


ORPHANS = """
import sys, time
from lib import engine, program

def endless(marker, number):
    import os, time
    with open(f"{marker}{number}", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    text = program.text({"_entry": endless})
    cases = [{"marker": sys.argv[1], "number": number} for number in range(2)]
    engine.run([engine.Task(text, "_entry", c, engine.SOON, False) for c in cases], "endless")
"""


def test_processes_end_with_the_run_that_started_them(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    environment = {**os.environ, "PYTHONPATH": str(CODE), "REGRETBOOK_THREADS": "2"}
    run_alone = subprocess.Popen([sys.executable, script, tmp_path / "pid"], env=environment)
    markers = [tmp_path / "pid0", tmp_path / "pid1"]
    while not all(marker.exists() and marker.read_text() for marker in markers):
        time.sleep(0.1)
    run_alone.kill()
    run_alone.wait()
    for _ in range(300):
        if not any(alive(marker.read_text()) for marker in markers):
            return
        time.sleep(0.1)
    raise AssertionError("the processes go on without anybody who waits for them")


def alive(pid):
    """Say whether a process runs; one that has ended may still be listed as defunct."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")


@pytest.mark.parametrize("name", ["slurm", "Dask", "plan", "", "tcp://127.0.0.1:8786"])
def test_an_unknown_engine_is_refused_with_those_there_are(name):
    with pytest.raises(BookError, match=r"use threads, dask, or dask://HOST:PORT"):
        engine.check(name)


@pytest.mark.parametrize("name", ["dask://", "dask://somewhere", "dask://:8786", "dask://a:b"])
def test_a_scheduler_without_place_is_refused(name):
    with pytest.raises(BookError, match="must be dask://HOST:PORT"):
        engine.check(name)


def test_a_scheduler_that_is_not_there_is_one_sentence(monkeypatch, capfd):
    name = "dask://127.0.0.1:9"
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    with pytest.raises(BookError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        engine.check(name)
    monkeypatch.setenv("REGRETBOOK_ENGINE", name)
    with pytest.raises(BookError, match="no Dask scheduler answers"):
        run(draws(1), "nowhere")
    assert capfd.readouterr() == ("", "")


def test_dask_that_is_not_installed_is_one_sentence(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BookError, match=r"pip install 'regretbook\[cluster\]'"):
        engine.check("dask")


def local_cluster(workers, **options):
    options = {"threads_per_worker": 1, "silence_logs": 50, **options}
    return LocalCluster(n_workers=workers, dashboard_address="127.0.0.1:0", **options)


@pytest.fixture(scope="module")
def dask_cluster():
    """Two worker processes of a scheduler that the engine is only told the place of."""
    with local_cluster(2, scheduler_kwargs={"allowed_failures": 0}) as found:
        yield found


@pytest.fixture
def elsewhere(dask_cluster, monkeypatch):
    name = dask_cluster.scheduler_address.replace("tcp://", "dask://")
    monkeypatch.setenv("REGRETBOOK_ENGINE", name)
    return name


def test_a_scheduler_elsewhere_gives_the_same_bits_and_the_same_store(
    empty_store, monkeypatch, tmp_path, elsewhere
):
    engine.check(elsewhere)
    on_dask = run(draws(), "dask")
    names = [path.relative_to(empty_store) for path in entries(empty_store)]
    monkeypatch.setenv("REGRETBOOK_ENGINE", "threads")
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "other"))
    assert same(run(draws(), "threads"), on_dask)
    assert names == [path.relative_to(tmp_path / "other") for path in entries(tmp_path / "other")]


def test_an_error_of_a_task_is_the_error_of_the_run(elsewhere):
    with pytest.raises(ValueError, match="number 3 is not liked"):
        run(tasks_of(fail, [{"number": 3}]), "fails")


def test_a_worker_killed_in_the_middle_costs_only_its_running_tasks(
    empty_store, tmp_path, dask_cluster, elsewhere
):
    marker = tmp_path / "marker"
    tasks = tasks_of(linger, [{"marker": str(marker), "number": i} for i in range(12)])
    with Client(dask_cluster, set_as_default=False) as client:
        victim, _ = client.run(os.getpid).values()

        def kill():
            while not (entries(empty_store) and f":{victim} " in marker.read_text()):
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        results = run(tasks, "killed")
        killer.join()
    assert [int(result["number"]) for result in results] == list(range(12))
    begun = [word.partition(":")[0] for word in marker.read_text().split() if word != "end"]
    assert set(begun) == {str(i) for i in range(12)}
    # A worker has one task running, and may have ended another that was not fetched yet.
    assert len(begun) <= 12 + 2
    pids = {word.partition(":")[2] for word in marker.read_text().split() if word != "end"}
    assert str(victim) in pids and len(pids) > 1


def test_the_engine_on_this_machine_gives_the_same_bits(monkeypatch, tmp_path, capfd):
    threads = run(draws(), "threads")
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "other"))
    monkeypatch.setenv("REGRETBOOK_ENGINE", "dask")
    monkeypatch.setenv("REGRETBOOK_THREADS", "2")
    engine.check("dask")
    try:
        assert same(run(draws(), "dask"), threads)
        started = cluster._local(2)
        results = run(tasks_of(linger, [{"marker": os.devnull, "number": 1}]), "again")
        assert cluster._local(2) is started  # one cluster for all runs of a page
        assert int(results[0]["process"]) != os.getpid()
    finally:
        cluster._local(2).close()
        cluster._local.cache_clear()
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def other_worker(tmp_path):
    """A worker of a scheduler of its own that has another numpy, as far as packages say."""
    fake = tmp_path / "fake" / "numpy-1.2.3.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.2.3\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(fake.parent), str(CODE)])}
    with local_cluster(0) as found, Client(found, set_as_default=False) as client:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", found.scheduler_address]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", "stranger"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*command, *options], env=environment, **silent)
        client.wait_for_workers(1, timeout=60)
        yield found.scheduler_address.replace("tcp://", "dask://")
        process.kill()
        process.wait()


def test_a_worker_with_other_packages_is_refused_by_name(other_worker, monkeypatch, empty_store):
    installed = provenance.versions()["numpy"]
    message = rf"worker \S+ has numpy 1\.2\.3, and this run has numpy {installed}: install the same"
    with pytest.raises(BookError, match=message):
        engine.check(other_worker)
    monkeypatch.setenv("REGRETBOOK_ENGINE", other_worker)
    with pytest.raises(BookError, match=message):
        run(draws(2), "refused")
    assert not entries(empty_store)


def test_a_worker_with_another_lib_is_refused():
    versions = provenance.versions()
    made = program.text({}, "from lib import trial")
    assert cluster.difference(made, versions) == ""
    digest = made.partition("# lib/trial.py ")[2][:20]
    assert "has another lib" in cluster.difference(made.replace(digest, "0" * 20), versions)
