"""Kernels that need not import: they are forked from a process that has the libraries already.

Importing them takes two seconds, and a book has a kernel for every page. A fork has memory of its
own, so that nothing a page does reaches another one. Where large processes cannot be forked safely,
which is everywhere but on Linux, kernels start as they always do.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

from ci.project import ONE_THREAD, environment
from lib.paths import CODE, Project

# What nearly every page imports; `lib` itself reads settings of its run when it is imported.
LIBRARIES = [
    *("ipykernel.kernelapp", "ipykernel.debugger"),
    *("numba", "pandas", "scipy.stats", "seaborn", "sklearn.cluster"),
]
NETWORKS = ["torch", "torch._dynamo"]  # the second by any optimiser; both together take seconds
DEFAULTS = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # as a kernel would choose it
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # ipykernel's debugger would warn of frozen modules
}
LONGEST = 1 << 20  # bytes of a message
PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets when its parent ends


class Nursery:
    """A process, started when it is first needed, that forks itself into kernels on request."""

    def __init__(self, project: Project, libraries: list[str]):
        self.project, self.libraries, self.lock = project, libraries, threading.Lock()
        self.process: subprocess.Popen | None = None

    def fork(self, arguments: list[str], env: dict[str, str], cwd: str, log: int) -> "Forked":
        """Return a kernel with these arguments and this environment that writes to a log."""
        request = json.dumps([arguments, env, cwd]).encode()
        with self.lock:
            if self.process is None:
                self._start()
            socket.send_fds(self.door, [request], [log])
            answer = self.door.recv(LONGEST)
        if not answer:
            raise ConnectionError("the nursery has ended")
        return Forked(int(answer))

    def _start(self) -> None:
        self.door, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ci.nursery", str(inside.fileno()), *self.libraries],
                cwd=CODE,
                env={**DEFAULTS, **os.environ, **environment(self.project), **ONE_THREAD},
                stdin=subprocess.DEVNULL,
                pass_fds=[inside.fileno()],
                start_new_session=True,  # Ctrl-C is for those who started it
            )

    def close(self) -> None:
        """End it, and with it the kernels that are left."""
        if self.process:
            self.door.close()
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def opened(project: Project, pages: list[str]) -> Iterator[Nursery | None]:
    """Give a nursery where the texts of several pages will run and it works, else None."""
    if len(pages) < 2 or sys.platform != "linux":
        yield None
        return
    trains = any("import torch" in text for text in pages)
    nursery = Nursery(project, LIBRARIES + NETWORKS * trains)
    try:
        yield nursery
    finally:
        nursery.close()


class Forked:
    """A forked kernel, with what jupyter_client asks of a `Popen`.

    It is no child of this process, so that nobody here learns how it ended.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid, self.handle = pid, os.pidfd_open(pid)
        self.ended = False

    def poll(self) -> int | None:
        return 0 if self._ends(0) else None

    def wait(self) -> int:
        self._ends(None)
        return 0

    def send_signal(self, number: int) -> None:
        if not self._ends(0):
            signal.pidfd_send_signal(self.handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ends(self, patience: float | None) -> bool:
        """Return whether it ends within so many milliseconds; None waits until it does."""
        if not self.ended:
            watched = select.poll()
            watched.register(self.handle, select.POLLIN)
            if watched.poll(patience):
                self.ended = True
                os.close(self.handle)
        return self.ended


def provisioner(nursery: Nursery | None, **options):
    """Return what launches a kernel for jupyter_client: from a nursery, if there is one alive."""
    from jupyter_client.provisioning import LocalProvisioner

    class Provisioner(LocalProvisioner):
        async def launch_kernel(self, cmd, **options):
            arguments = cmd[cmd.index("-f") :]  # of `ci.kernel`
            place, log = options["cwd"], options["stdout"].fileno()
            try:
                self.process = nursery.fork(arguments, options["env"], place, log)
            except OSError:
                return await super().launch_kernel(cmd, **options)
            self.pid = self.pgid = self.process.pid
            self.cwd = place
            return self.connection_info

    return (Provisioner if nursery else LocalProvisioner)(**options)


def main(door: socket.socket, libraries: list[str]) -> None:
    """Import what kernels need, then fork for every request until nobody is left to ask."""
    own = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for kernels: they leave no zombies
    sys.path.pop(0)  # a kernel does not look for modules where it happens to start
    for name in libraries:
        importlib.import_module(name)
    warm_up()
    gc.freeze()
    while True:
        request, streams, _, _ = socket.recv_fds(door, LONGEST, 1)
        if not request:
            return
        kernel = os.fork()
        if not kernel:
            door.close()
            end_with(own)
            become_kernel(*json.loads(request), *streams)
        with contextlib.suppress(OSError):  # both do it: a signal to the group must not come here
            os.setpgid(kernel, kernel)
        os.close(streams[0])
        door.send(str(kernel).encode())


def warm_up() -> None:
    """Compile something: numba looks for all that it knows of types when it first compiles."""
    import numba
    import numpy

    numba.njit(lambda x: x.sum())(numpy.ones(2))


def end_with(parent: int) -> None:
    """Let the system kill this process as soon as its parent is gone, which it may be already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_kernel(arguments: list[str], env: dict[str, str], cwd: str, log: int) -> None:
    """Turn this fork into a kernel; it does not return."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["kernel.py", *arguments]
    import pandas

    from ci.kernel import Kernel

    pandas.set_option("display.max_columns", 20)  # as where it finds a kernel when it is imported
    try:
        Kernel.launch_instance(argv=arguments)
    finally:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
