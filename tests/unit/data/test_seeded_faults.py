"""Each seeded fault is found by its own check, at its place, and by no other; clean rows by none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.data.checks import CHECKS, Violation
from envace.data.sample import Conversation, World, generate_conversations, to_raw_record
from tests.unit.data.seeded_faults import ALL_FAULTS, ROW_FAULTS
from tests.unit.data.seeded_run_faults import RUN_FAULTS, STOPS, Bench, RunFault, Stop
from tests.unit.data.spoiling import RawRow, RowFault

CLEAN_ROWS = 1000
Found = Callable[[RawRow], list[Violation]]


def _name(fault: Any) -> str:
    return f"{fault.check}{fault.severity}-{fault.name}"


@pytest.fixture(scope="module")
def conversations(world: World) -> list[Conversation]:
    return generate_conversations(world, 1600, 11, "train")


@pytest.fixture(scope="module")
def clean_rows(world: World, conversations: list[Conversation]) -> list[RawRow]:
    """1,000 rows none of which records an error."""
    made = [to_raw_record(world, each) for each in conversations if not _has_error(each)]
    assert len(made) >= CLEAN_ROWS
    return made[:CLEAN_ROWS]


@pytest.fixture
def bench(tmp_path: Path, params: Params, clean_rows: list[RawRow]) -> Bench:
    return Bench(tmp_path, params, clean_rows[:60])


def _has_error(conversation: Conversation) -> bool:
    return any(turn.kind == "error" for turn in conversation.turns)


@pytest.mark.parametrize("fault", ROW_FAULTS, ids=_name)
def test_in_a_row_exactly_this_check_fires_at_this_place(clean_row: RawRow, found: Found, fault: RowFault) -> None:
    fault.spoil(clean_row)
    violations = found(clean_row)
    assert {(v.check_id, v.severity, v.pointer, v.flag) for v in violations} == fault.findings
    for violation in violations:
        assert violation.detail and len(violation.detail) <= 300 and violation.detail.isprintable()


@pytest.mark.parametrize("fault", RUN_FAULTS, ids=_name)
def test_in_a_run_exactly_this_check_fires_at_this_place(bench: Bench, fault: RunFault) -> None:
    violations = fault.find(bench)
    assert {v.check_id for v in violations} == {fault.check}
    worst = [v for v in violations if v.severity == fault.severity]
    assert {(v.file, v.row_index, v.pointer, v.flag) for v in worst} == {(*place, fault.flag) for place in fault.places}
    assert all(v.severity == "W" for v in violations if v not in worst)


@pytest.mark.parametrize("fault", STOPS, ids=_name)
def test_what_cannot_go_on_stops_with_its_reason(bench: Bench, fault: Stop) -> None:
    with pytest.raises(fault.error, match=fault.message):
        fault.run(bench)


def test_every_check_has_a_fault_for_each_of_its_severities() -> None:
    seeded = {(fault.check, fault.severity) for fault in ALL_FAULTS}
    assert seeded == {(check.id, severity) for check in CHECKS.values() for severity in check.severities}


def test_the_spoiled_row_was_clean(clean_row: RawRow, found: Found) -> None:
    assert found(clean_row) == []


def test_a_thousand_clean_rows_raise_nothing(tmp_path: Path, params: Params, clean_rows: list[RawRow]) -> None:
    bench = Bench(tmp_path, params, clean_rows)
    assert bench.validate(bench.lines()) == []
    kept = (tmp_path / "out/train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in kept] == clean_rows


def test_rows_that_record_errors_raise_nothing_else(
    world: World, conversations: list[Conversation], found: Found
) -> None:
    spoken = [each for each in conversations if _has_error(each)]
    assert len(spoken) > 50
    for conversation in spoken:
        assert {v.check_id for v in found(to_raw_record(world, conversation))} == {17}
