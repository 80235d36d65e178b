"""What of the bundled sample is chosen in params.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from envace.params_basis import Count, Section, Share

MOST_TURNS = 8
"""Of a conversation of the sample: the hard messages of one domain are few, and no conversation says one twice."""


class SampleParams(Section):
    """The bundled sample. `turns`: the fewest and the most of a conversation; None is the usual one to three."""

    seed: int
    train_tasks: Count
    heldout_tasks: Count
    hard_tasks: Count
    turns: Annotated[list[Count], Field(min_length=2, max_length=2)] | None
    faulty_share: Share

    @model_validator(mode="after")
    def _turns_are_a_range(self) -> SampleParams:
        if self.turns and not self.turns[0] <= self.turns[1] <= MOST_TURNS:
            raise ValueError(f"turns are [fewest, most], and at most {MOST_TURNS}; got {self.turns}")
        return self
