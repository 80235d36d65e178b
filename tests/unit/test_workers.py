"""Work in processes: order, errors, and a process that is killed while it waits, computes or answers."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator

import psutil
import pytest

from envace.errors import StageError
from envace.workers import Worker, in_processes

LARGE = 8_000_000
"""Bytes; more than a pipe holds, so a worker that answers with it waits until it is read."""


def late_for_even(item: int) -> tuple[int, int]:
    """Even items take longer, so that answers come in another order than asked for."""
    time.sleep(0.2 if item % 2 == 0 else 0.0)
    return item, os.getpid()


def refuse(item: int, *, bad: int) -> int:
    """Raise for one item."""
    if item == bad:
        raise StageError(f"item {item} is bad")
    return item


class Untravelled(Exception):
    """Cannot be made again from its arguments, so no pipe carries it."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def fail(item: int) -> int:
    """Raise what nobody expects."""
    raise Untravelled(item, item + 1)


def large(_: int) -> bytes:
    """An answer that fills the pipe."""
    return b"x" * LARGE


def never(_: int) -> None:
    """An answer that does not come."""
    time.sleep(600)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True) if "spawn_main" in str(child.cmdline())}


@pytest.fixture
def before() -> set[int]:
    """The worker processes that others have."""
    return children()


@pytest.mark.parametrize("items", [0, 1, 2, 7])
def test_answers_come_in_the_order_of_the_items(items: int, before: set[int]) -> None:
    answers = list(in_processes(late_for_even, range(items), 2))
    assert [item for item, _ in answers] == list(range(items))
    assert len({process for _, process in answers}) == min(items, 2)
    assert os.getpid() not in {process for _, process in answers}
    assert children() <= before


def test_no_more_items_are_taken_than_there_are_processes_to_work_on_them() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(10):
            taken.append(item)
            yield item

    for index, _ in enumerate(in_processes(late_for_even, items(), 2)):
        assert len(taken) <= index + 3


def test_what_a_worker_raises_is_raised_here_after_the_answers_before_it(before: set[int]) -> None:
    answers = in_processes(functools.partial(refuse, bad=3), range(6), 2)
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StageError, match="item 3 is bad") as raised:
        next(answers)
    assert "in refuse" in raised.value.__notes__[0], "where in the worker it happened"
    assert children() <= before


def test_an_error_that_no_pipe_carries_is_told_by_its_text() -> None:
    with pytest.raises(RuntimeError, match="Untravelled: 4 and 5") as raised:
        list(in_processes(fail, [4], 1))
    assert "in fail" in raised.value.__notes__[0]


def test_an_iteration_that_is_left_early_leaves_no_process(before: set[int]) -> None:
    answers = in_processes(late_for_even, range(6), 2)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert children() <= before


def test_a_worker_killed_halfway_through_its_answer_is_one_clear_error() -> None:
    worker: Worker[int, bytes] = Worker(large)
    worker.give(0)
    assert worker._pipe.poll(60), "the answer has begun"
    worker.process.kill()
    with pytest.raises(StageError, match="ended from outside"):
        worker.take()
    worker.end()


def test_a_worker_killed_while_it_computes_is_one_clear_error() -> None:
    worker: Worker[int, None] = Worker(never)
    worker.give(0)
    worker.process.kill()
    with pytest.raises(StageError, match="run again"):
        worker.take()
    worker.end()


def test_a_worker_killed_between_items_is_one_clear_error() -> None:
    worker: Worker[int, tuple[int, int]] = Worker(late_for_even)
    worker.give(1)
    assert worker.take()[0] == 1
    worker.process.kill()
    worker.process.join()
    with pytest.raises(StageError, match="run again"):
        worker.give(2)
    worker.end()
