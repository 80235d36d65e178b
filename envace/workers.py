"""Work spread over processes: answers in order, and a process that is killed is noticed, even while it answers."""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Generic, TypeVar

from envace.errors import StageError
from envace.processes import die_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`function` of each item, in the order of the items, made by up to `workers` processes.

    At most `workers` items are under way, so that results do not pile up in front of a slow reader. What `function`
    raises is raised here; a process that was ended from outside is a StageError. No process outlives the iteration.
    """
    with ExitStack() as started:
        busy: deque[Worker[Item, Result]] = deque()
        for item in items:
            if len(busy) < workers:
                worker = Worker(function)
                started.callback(worker.end)
                worker.give(item)
                busy.append(worker)
                continue
            worker = busy.popleft()
            result = worker.take()
            worker.give(item)
            busy.append(worker)
            yield result
        while busy:
            yield busy.popleft().take()


class Worker(Generic[Item, Result]):
    """One process and a pipe that nobody else holds: when the process ends, reading from the pipe ends too.

    The processes of a concurrent.futures pool share one pipe for their answers, whose end the parent holds as well: of
    a process killed halfway through an answer the pool would wait for the other half for ever.
    """

    def __init__(self, function: Callable[[Item], Result]) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, function), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, item: Item) -> None:
        """Hand over an item; only after the answer to the one before has been taken, or both sides could be writing."""
        try:
            self._pipe.send(item)
        except OSError:
            raise _ended() from None

    def take(self) -> Result:
        """Wait for the answer."""
        try:
            answer, error = self._pipe.recv()
        except (EOFError, OSError):
            raise _ended() from None
        if error is not None:
            raise error
        return answer

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._pipe.close()
        self.process.terminate()
        self.process.join()


def _work(pipe: Connection, function: Callable[[Item], Result]) -> None:
    die_with_parent()
    # Ctrl-C reaches the whole process group; the parent ends its workers when it has noticed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        try:
            answer = (function(item), None)
        except Exception as error:
            answer = (None, _portable(error))
        pipe.send(answer)


def _portable(error: Exception) -> Exception:
    """The error, where it came from as a note (a pipe carries no traceback); one that cannot travel as its text."""
    where = traceback.format_exc()
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))  # type: ignore[arg-type]  # typeshed binds `loads` to an instance
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In a worker process:\n{where}")
    return error


def _ended() -> StageError:
    return StageError("a worker process was ended from outside, probably for lack of memory; run again")
