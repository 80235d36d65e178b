"""How well a judge does its work: counters for the metrics of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from envace.types import Verdict


def unknown_fraction(verdicts: Iterable[Mapping[str, Verdict]]) -> float | None:
    """Share of unknown ones among the verdicts kept in turn records; None where there is no verdict at all.

    Exact, and the same wherever the rollouts were judged: it counts what was recorded, not what was asked.
    """
    kept = [verdict for turn in verdicts for verdict in turn.values()]
    return sum(verdict is Verdict.UNKNOWN for verdict in kept) / len(kept) if kept else None


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
