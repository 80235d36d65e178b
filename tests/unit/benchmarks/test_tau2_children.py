"""Conversations in processes of their own: a runaway ends alone, memory is bounded, nothing leaks, all are ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from contextlib import closing

from harnesses.tau2.children import Died, in_children
from harnesses.tau2.turns import SCORING, Clock

STATE: list[int] = []


def remember(job: int) -> int:
    STATE.append(job)
    return len(STATE)


def test_what_one_leaves_behind_no_other_sees() -> None:
    assert sorted(in_children([1, 2, 3], remember, parallel=2, memory_mb=256)) == [(1, 1), (2, 1), (3, 1)]
    assert STATE == []


def test_a_step_that_no_python_code_can_interrupt_is_ended_and_the_others_go_on() -> None:
    def work(job: str) -> int:
        with Clock(0.3).stopped():
            pass
        return eval("9**9**9**9") if job == "runaway" else 1

    found = dict(in_children(["runaway", "fine"], work, parallel=1, memory_mb=1024))
    assert found["fine"] == 1
    assert isinstance(found["runaway"], Died) and found["runaway"].by == signal.SIGALRM


def test_the_clock_stands_while_someone_speaks_and_allows_more_for_scoring() -> None:
    def work(job: str) -> str:
        clock = Clock(0.2)
        with clock.stopped():
            time.sleep(0.5)
        if job == "scoring":
            clock.scoring()
            time.sleep(0.2 * SCORING / 4)
        return "alive"

    assert dict(in_children(["talk", "scoring"], work, parallel=1, memory_mb=256)) == {
        "talk": "alive",
        "scoring": "alive",
    }


def test_memory_beyond_the_bound_is_refused() -> None:
    def work(megabytes: int) -> str:
        try:
            return str(len(bytearray(megabytes << 20)) >> 20)
        except MemoryError:
            return "refused"

    assert dict(in_children([16, 2048], work, parallel=1, memory_mb=128)) == {16: "16", 2048: "refused"}


def test_a_process_that_ends_without_an_answer_is_told_by_its_code() -> None:
    def work(code: int) -> None:
        os._exit(code)

    [(_, found)] = in_children([7], work, parallel=1, memory_mb=256)
    assert found == Died(7) and found.by == 0


def test_stopping_early_leaves_no_process() -> None:
    def work(job: int) -> int:
        if job:
            time.sleep(600)
        return os.getpid()

    with closing(in_children([0, 1, 2], work, parallel=3, memory_mb=256)) as answers:  # type: ignore[type-var]
        next(answers)
    assert multiprocessing.active_children() == []
