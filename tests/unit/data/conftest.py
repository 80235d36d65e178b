"""A clean raw row of two turns that tests spoil, and a shortcut that examines one row."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from envace.data.aliases import normalise_row
from envace.data.checks import Bounds, EvidenceCount, Findings, Row, SeenRows, Violation, examine
from envace.data.ids import safe_task_id
from envace.data.sample import World, build_world, generate_conversations, to_raw_record
from envace.files import compact_json

RawRow = dict[str, Any]


@pytest.fixture(scope="session")
def world() -> World:
    """The world of seed 0."""
    return build_world(0)


@pytest.fixture
def clean_row(rich_row: RawRow) -> RawRow:
    """A copy of `rich_row` to spoil."""
    return deepcopy(rich_row)


@pytest.fixture(scope="session")
def rich_row(world: World) -> RawRow:
    """The first training row of two turns whose first turn has two calls at once and whose second has calls too."""
    for conversation in generate_conversations(world, 400, 0, "train"):
        kinds = [turn.kind for turn in conversation.turns]
        if kinds in (["parallel", "chain"], ["parallel", "single"]):
            return to_raw_record(world, conversation)
    raise AssertionError("the sample has no such row")


@pytest.fixture(scope="session")
def found() -> Callable[[RawRow], list[Violation]]:
    """Examines one raw row after aliases, alone, and gives what counts in the end."""

    def examine_one(raw: RawRow) -> list[Violation]:
        record = normalise_row(raw)
        findings = Findings("train", 0, safe_task_id(record.get("uuid")))
        row = Row(record, len(compact_json(raw).encode("utf-8", "surrogatepass")), Bounds(60_000, 1_000), findings)
        examine(row, SeenRows(), EvidenceCount())
        return findings.settled()

    return examine_one
