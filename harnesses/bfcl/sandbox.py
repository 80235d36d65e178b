"""Bounded children for whatever a policy steers: no network where the kernel lets us, little memory, little time.

A zygote is forked while the driver has one thread and forks a child for each task, so that each starts from the same
clean state and threads of the driver are never forked. Child and driver talk over a socket: tasks go in pickled, since
the driver is trusted; only JSON comes out.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import resource
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_MAX_MESSAGE = 64 << 20
_FILE_BYTES = 64 << 20
_OPEN_FILES = 256
_STATUS = struct.Struct("q")

Work = Callable[[dict[str, Any], "Channel"], Any]


class ChildFailedError(RuntimeError):
    """The child was stopped or died. The message says of what."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """silent_s: how long a child may work without a word; cpu_s: its processor time in all; memory_mb: beyond what it
    starts with."""

    silent_s: float
    cpu_s: int
    memory_mb: int


class Channel:
    """The child's end of the talk."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, question: dict[str, Any]) -> Any:
        """Ask the driver something and wait for its answer."""
        self.send({"ask": question})
        return pickle.loads(self._connection.recv_bytes())

    def send(self, value: dict[str, Any]) -> None:
        """Send plain data to the driver."""
        self._connection.send_bytes(json.dumps(value).encode())


class Zygote:
    """Forks children that do `work`. To be made while this process has a single thread, and used by one at a time."""

    def __init__(self, work: Work, *, without_network: bool) -> None:
        self._control, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._control.close()
            _serve(theirs, work, without_network)
        theirs.close()

    def run(self, task: dict[str, Any], bounds: Bounds, answer: Callable[[Any], Any]) -> Any:
        """Do `task` in a new child, answering what it asks. Raises ChildFailedError, and whatever `answer` raises."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [pickle.dumps(bounds)], [theirs.fileno()])
        channel = Connection(ours.detach())
        status = 0
        try:
            channel.send_bytes(pickle.dumps(task))
            while True:
                if not channel.poll(bounds.silent_s):
                    raise ChildFailedError(f"stopped: it worked for more than {bounds.silent_s:g} s without a word")
                message = json.loads(channel.recv_bytes(_MAX_MESSAGE))
                if "failed" in message:
                    raise ChildFailedError(str(message["failed"])[:500])
                if "ask" not in message:
                    return message["done"]
                channel.send_bytes(pickle.dumps(answer(message["ask"])))
        except (EOFError, OSError, ValueError, KeyError, TypeError):  # cut off, or no message of ours
            status = self._end_child()
            raise ChildFailedError(f"died: {_death(status)}") from None
        finally:
            channel.close()
            if not status:
                self._end_child()

    def close(self) -> None:
        """End it. It is told to, since zygotes that were made later hold this socket too: closing it shows nothing."""
        self._control.send(b"q")
        self._control.close()
        os.waitpid(self.pid, 0)

    def _end_child(self) -> int:
        self._control.send(b"k")
        return _STATUS.unpack(_exactly(self._control, _STATUS.size))[0]


def network_can_be_dropped() -> str | None:
    """None where a process may leave the network behind, else why not. Tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        os._exit(_leave_network() or 0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if code == 0 else f"unshare is not permitted here ({os.strerror(code)})"


def _leave_network() -> int:
    """0, or the error's number. With the right to do so at once, else through a user namespace of one's own."""
    if _LIBC.unshare(_CLONE_NEWNET) == 0 or _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        return 0
    return ctypes.get_errno() or 1


def _serve(control: socket.socket, work: Work, without_network: bool) -> NoReturn:
    """The zygote: one child a request, killed and waited for when the driver says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _LIBC.prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
    if without_network and _leave_network():
        os._exit(1)
    while True:
        said, handed, _, _ = socket.recv_fds(control, 4096, 1)
        if not said or not handed:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            control.close()
            _child(handed[0], work, pickle.loads(said))
        os.close(handed[0])
        gone = not control.recv(1)
        for target in (-pid, pid):  # its group, where it has come so far as to have one
            try:
                os.kill(target, signal.SIGKILL)
            except ProcessLookupError:
                continue
        status = os.waitpid(pid, 0)[1]
        if gone:
            os._exit(0)
        control.send(_STATUS.pack(status or -1))


def _child(descriptor: int, work: Work, bounds: Bounds) -> NoReturn:
    code = 1
    try:
        os.setsid()
        _LIBC.prctl(1, int(signal.SIGKILL), 0, 0, 0)
        _limit(bounds)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the harness prints every step
            os.dup2(null, stream)
        os.environ.clear()
        connection = Connection(descriptor)
        channel = Channel(connection)
        task = pickle.loads(connection.recv_bytes())
        try:
            channel.send({"done": work(task, channel)})
        except Exception as error:  # the harness's own, told instead of lost
            channel.send({"failed": f"{type(error).__name__}: {error}"})
        code = 0
    finally:
        os._exit(code)


def _limit(bounds: Bounds) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        present = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    for kind, most in (
        (resource.RLIMIT_AS, present + (bounds.memory_mb << 20)),
        (resource.RLIMIT_CPU, bounds.cpu_s),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _death(status: int) -> str:
    if status == -1:
        return "it ended without a result"
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL or code == -signal.SIGXCPU:
        return "it used more than its processor time or memory, or was stopped in the middle of a word"
    return f"it ended with {code} and no result"


def _exactly(control: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = control.recv(count - len(found))
        if not more:
            raise ChildFailedError("died: its zygote is gone")
        found += more
    return found
