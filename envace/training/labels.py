"""What the estimator must know of each training row besides its reward: verl hands over no role, so we do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from envace.config import AdvantageParams

PADDING_ROLE = "padding"


class Span(NamedTuple):
    """Where one output stands in a row's response: tokens `begin` to `end` (None: to the row's end)."""

    role: str
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class RowLabel:
    """One row: the outputs in it, their rollout, and whether that rollout has a reward."""

    role: str  # of the row's first output, or PADDING_ROLE
    rollout: str
    scorable: bool
    order: tuple[int, int, int]  # (task index, rollout index, index of the first output): a stable order of rows
    record: str  # the rollout's record as JSON text, on its last row only
    seconds: tuple[float, float] = (0.0, 0.0)  # of the rollout: in the judge, and in all
    several: tuple[Span, ...] = ()  # where the row holds more than one output: all of them

    @property
    def counts(self) -> bool:
        """Whether the row enters baselines and the loss."""
        return self.scorable and self.role != PADDING_ROLE

    @property
    def spans(self) -> tuple[Span, ...]:
        """The outputs of the row, in order."""
        return self.several or (Span(self.role),)

    @classmethod
    def of(cls, extra_fields: dict[str, Any], *, padding: bool) -> RowLabel:
        """The label that the agent loop put into a row's extra fields."""
        task, rollout, output = extra_fields["order"]
        role = PADDING_ROLE if padding else extra_fields["role"]
        record = "" if padding else extra_fields["record"]
        judging, whole = extra_fields.get("seconds", (0.0, 0.0))
        order = (task, rollout, output)
        several = () if padding else tuple(Span(*span) for span in extra_fields.get("spans", ()))
        return cls(role, f"{task}#{rollout}", extra_fields["scorable"], order, record, (judging, whole), several)


@dataclass(slots=True)
class LabelledBatch:
    """The labels of one batch in row order, and the advantages once they are computed, one for each of `outputs`.

    `updates`: how many rows each optimizer update takes, in row order; empty where one takes all of them.
    """

    rows: list[RowLabel]
    advantage: AdvantageParams
    updates: list[int] = field(default_factory=list)
    scalar_advantages: list[float] = field(default_factory=list)

    @property
    def outputs(self) -> list[tuple[RowLabel, Span]]:
        """Every output with its row, in row order."""
        return [(row, span) for row in self.rows for span in row.spans]


_current: ContextVar[LabelledBatch | None] = ContextVar("envace_labelled_batch", default=None)


@contextmanager
def labelled(batch: LabelledBatch) -> Iterator[None]:
    """Make the labels of a batch visible to the estimator."""
    token = _current.set(batch)
    try:
        yield
    finally:
        _current.reset(token)


def current_labels() -> LabelledBatch | None:
    """The batch whose advantages are being computed."""
    return _current.get()
