"""How well a judge does its work: counters of the judge as a whole, and of what it did for one turn of one rollout."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

from envace.types import Verdict


class UnknownCause(StrEnum):
    """Why a verdict is unknown. The first four are an endpoint's; the last is that of a judge that is code alone."""

    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    UNREACHABLE = "unreachable"
    BREAKER = "breaker"
    UNDECIDED = "undecided"


def unknown_fraction(verdicts: Iterable[Mapping[str, Verdict]]) -> float | None:
    """Share of unknown ones among the verdicts kept in turn records; None where there is no verdict at all.

    Exact, and the same wherever the rollouts were judged: it counts what was recorded, not what was asked.
    """
    kept = [verdict for turn in verdicts for verdict in turn.values()]
    return sum(verdict is Verdict.UNKNOWN for verdict in kept) / len(kept) if kept else None


@dataclass(slots=True)
class JudgeWork:
    """What judging one turn took: why verdicts are unknown, by criterion, and what was asked of an endpoint.

    `seconds` is the time of the `waited` verdicts that needed an endpoint or its cache. How much was asked and how much
    cached depends on what was judged before, so none of this but the causes may enter what has to be reproduced.
    """

    causes: dict[str, UnknownCause] = field(default_factory=dict)
    asked: int = 0
    cached: int = 0
    waited: int = 0
    seconds: float = 0.0

    def figures(self) -> dict[str, float]:
        """The counters by name; empty where no endpoint was needed."""
        counted = {"asked": self.asked, "cached": self.cached, "waited": self.waited, "seconds": self.seconds}
        return counted if self.waited else {}


_work: ContextVar[JudgeWork | None] = ContextVar("envace_judge_work", default=None)


@contextmanager
def judge_work() -> Iterator[JudgeWork]:
    """Collects what judges do inside, in this task and those it starts."""
    work = JudgeWork()
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


@contextmanager
def timed_verdict() -> Iterator[None]:
    """Counts a verdict that needs an endpoint, and the time inside."""
    began = time.monotonic()
    try:
        yield
    finally:
        if (work := _work.get()) is not None:
            work.waited += 1
            work.seconds += time.monotonic() - began


def note_unknown(criterion_id: str, cause: UnknownCause) -> None:
    """Say why the verdict on a criterion of the turn being judged is unknown."""
    if (work := _work.get()) is not None:
        work.causes[criterion_id] = cause


@dataclass(slots=True)
class JudgeHealth:
    """Counters since the last `take`.

    `verdicts` and `unknown` count criteria of turns; `asked`, `unanswered` and `cached` count single questions (one
    criterion on one step): sent to the endpoint, sent but without a usable answer, and answered from the cache.
    `seconds` is the time all sent questions took, waiting for a free slot included.
    """

    verdicts: int = 0
    unknown: int = 0
    asked: int = 0
    unanswered: int = 0
    cached: int = 0
    seconds: float = 0.0
    last_error: str = ""

    def count(self, verdicts: Mapping[str, Verdict]) -> None:
        """Add the verdicts of one turn."""
        self.verdicts += len(verdicts)
        self.unknown += sum(verdict is Verdict.UNKNOWN for verdict in verdicts.values())

    def count_asked(self) -> None:
        """A question goes to the endpoint."""
        self.asked += 1
        if (work := _work.get()) is not None:
            work.asked += 1

    def count_cached(self) -> None:
        """A question was answered before."""
        self.cached += 1
        if (work := _work.get()) is not None:
            work.cached += 1

    def metrics(self) -> dict[str, float]:
        """The counters as metrics. A share or a mean of nothing is left out, not 0."""
        figures: dict[str, float] = {
            "judge/verdicts": self.verdicts,
            "judge/unknown": self.unknown,
            "judge/asked": self.asked,
            "judge/unanswered": self.unanswered,
            "judge/cached": self.cached,
        }
        if self.verdicts:
            figures["judge/unknown_fraction"] = self.unknown / self.verdicts
        if self.asked:
            figures["judge/latency_mean_s"] = self.seconds / self.asked
        return figures

    def take(self) -> dict[str, float]:
        """The metrics, and the counters start anew. `last_error` stays."""
        figures = self.metrics()
        self.verdicts = self.unknown = self.asked = self.unanswered = self.cached = 0
        self.seconds = 0.0
        return figures
