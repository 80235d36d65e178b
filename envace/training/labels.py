"""What the estimator must know of each training row besides its reward: verl hands over no role, so we do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from envace.config import AdvantageParams

PADDING_ROLE = "padding"


@dataclass(frozen=True, slots=True)
class RowLabel:
    """One row (one output): its role, its rollout, and whether that rollout has a reward."""

    role: str
    rollout: str
    scorable: bool
    order: tuple[int, int, int]  # (task index, rollout index, output index): a stable order of rows
    record: str  # the rollout's record as JSON text, on its last output only
    seconds: tuple[float, float] = (0.0, 0.0)  # of the rollout: in the judge, and in all

    @property
    def counts(self) -> bool:
        """Whether the row enters baselines and the loss."""
        return self.scorable and self.role != PADDING_ROLE

    @classmethod
    def of(cls, extra_fields: dict[str, Any], *, padding: bool) -> RowLabel:
        """The label that the agent loop put into a row's extra fields."""
        task, rollout, output = extra_fields["order"]
        role = PADDING_ROLE if padding else extra_fields["role"]
        record = "" if padding else extra_fields["record"]
        judging, whole = extra_fields.get("seconds", (0.0, 0.0))
        order = (task, rollout, output)
        return cls(role, f"{task}#{rollout}", extra_fields["scorable"], order, record, (judging, whole))


@dataclass(slots=True)
class LabelledBatch:
    """The labels of one batch in row order, and the advantages once they are computed.

    `updates`: how many rows each optimizer update takes, in row order; empty where one takes all of them.
    """

    rows: list[RowLabel]
    advantage: AdvantageParams
    updates: list[int] = field(default_factory=list)
    scalar_advantages: list[float] = field(default_factory=list)


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
