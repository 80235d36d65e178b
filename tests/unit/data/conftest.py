"""A clean raw row of two turns that tests spoil, and a shortcut that examines one row."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from envace.config import Params
from envace.data.aliases import normalise_row
from envace.data.checks import Findings, Row, SeenRows, Violation, examine
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
    """The first training row of two turns, the first with two calls at once and the second with one."""
    for conversation in generate_conversations(world, 400, 0, "train"):
        kinds = [turn.kind for turn in conversation.turns]
        if kinds == ["parallel", "single"]:
            return to_raw_record(world, conversation)
    raise AssertionError("the sample has no such row")


@pytest.fixture(scope="session")
def found(params: Params) -> Callable[[RawRow], list[Violation]]:
    """Examines one raw row after aliases, alone, and gives what counts in the end. The bounds suit a small row."""
    small = {"max_row_bytes": 60_000, "max_message_bytes": 1_000, "max_tools": 8, "max_reference_tokens": 3_000}
    bounds = params.validate_data.model_copy(update=small)

    def examine_one(raw: RawRow) -> list[Violation]:
        record = normalise_row(raw)
        findings = Findings("train", 0, safe_task_id(record.get("uuid")))
        row = Row(record, len(compact_json(raw).encode("utf-8", "surrogatepass")), bounds, findings)
        examine(row)
        if not findings.rejected:
            SeenRows().check(row)
        return findings.settled()

    return examine_one
