"""A forked process for each task: nothing that one task leaves behind reaches another, and a runaway can be ended."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from envace.processes import child_setup

Job = TypeVar("Job")
_FORK = multiprocessing.get_context("fork")
_MIB = 1 << 20
_RARELY = (50_000, 20, 100)


@dataclass(frozen=True)
class Died:
    """A process that ended without an answer."""

    exitcode: int

    @property
    def by(self) -> int:
        """The signal that ended it, or 0."""
        return max(0, -self.exitcode)


def in_children(
    jobs: Iterable[Job], work: Callable[[Job], Any], parallel: int, memory_mb: int
) -> Iterator[tuple[Job, Any]]:
    """`work` on each job in a process of its own, up to `parallel` at once; (job, result or `Died`) as they end.

    A child may allocate `memory_mb` beyond what it inherits. Closing the iterator ends those still at work. The caller
    must run no threads. `work` must return what pickles, and handle its own exceptions.
    """
    gc.freeze()  # else the first collection in each child copies all that it shares with this process
    waiting = iter(jobs)
    running: dict[Connection, tuple[Job, Any]] = {}
    try:
        while True:
            while len(running) < parallel and (job := next(waiting, None)) is not None:
                ours, theirs = _FORK.Pipe(duplex=False)
                child = _FORK.Process(target=_child, args=(theirs, work, job, memory_mb, os.getpid()), daemon=True)
                child.start()
                theirs.close()
                running[ours] = job, child
            if not running:
                return
            for each in wait(list(running)):
                assert isinstance(each, Connection)
                job, child = running.pop(each)
                yield job, _answer(each, child)
    finally:
        for _, child in running.values():
            child.kill()
            child.join()


def _answer(pipe: Connection, child: Any) -> Any:
    try:
        answer = pipe.recv()
    except EOFError:
        answer = None
    finally:
        pipe.close()
    child.join()
    return Died(child.exitcode) if answer is None else answer


def _child(pipe: Connection, work: Callable[[Any], Any], job: Any, memory_mb: int, parent: int) -> None:
    child_setup(parent)()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(*_RARELY)  # a database of half a million objects would be gone through again and again
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    inherited = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (inherited + memory_mb * _MIB,) * 2)
    pipe.send(work(job))
    pipe.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what the harness started (threads, connections) is not waited for
