"""`check_file` names every kind of fault of a user's file, with its place and what to do, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params, ValidateDataParams
from envace.data.checks import CHECKS
from envace.data.file_check import SEVERITIES, WHOLE_FILE, FileCheck, Finding, check_file, params_in_force
from envace.data.sample import World
from envace.data.sample.row_faults import ROW_FAULTS as SAMPLE_FAULTS
from envace.data.sample.rows import stream_rows
from envace.data.sample.writing import write_rows
from envace.errors import ConfigError, DataError
from tests.unit.data.seeded_faults import ROW_FAULTS

EVERYTHING = 10_000
Row = dict[str, Any]


@pytest.fixture
def small_bounds(params: Params) -> ValidateDataParams:
    """Bounds that small seeded faults exceed."""
    small = {"max_row_bytes": 60_000, "max_message_bytes": 1_000, "max_tools": 8, "max_reference_tokens": 3_000}
    return params.validate_data.model_copy(update=small)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of this test's own, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _different(row: Row, number: int) -> Row:
    made = deepcopy(row)
    made["uuid"] = str(uuid.UUID(int=number))
    made["messages"][0]["content"] += f" ({number})"
    return made


def _write_lines(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_seeded_fault_of_a_row_is_named(tmp_path: Path, rich_row: Row, small_bounds: ValidateDataParams) -> None:
    rows = [_different(rich_row, number) for number in range(len(ROW_FAULTS))]
    for row, fault in zip(rows, ROW_FAULTS, strict=True):
        fault.spoil(row)
    outcome = check_file(_write_lines(tmp_path / "a.jsonl", rows), small_bounds, EVERYTHING)
    assert outcome.rows == len(rows) == outcome.kept + outcome.quarantined and outcome.not_shown == {}
    told = {(f.row, f.check, f.severity, f.pointer): f for f in outcome.findings}
    for number, fault in enumerate(ROW_FAULTS):
        for check_id, severity, pointer, _ in fault.findings:
            finding = told[number, check_id, SEVERITIES[severity], pointer]
            assert finding.place == f"line {number + 1}"
            assert finding.detail and finding.advice == CHECKS[check_id].advice
    assert [f.row for f in outcome.findings] == sorted(f.row for f in outcome.findings if f.row is not None)


def test_every_fault_of_the_samples_rows_is_named(tmp_path: Path, world: World, params: Params) -> None:
    rows = list(stream_rows(world, 4 * len(SAMPLE_FAULTS), 0, "train"))
    spoiled = {}
    for number, fault in enumerate(SAMPLE_FAULTS, start=1):
        for position in range(number, len(rows)):
            row = deepcopy(rows[position])
            if position not in spoiled and fault.spoil(row, rows[0]):
                rows[position], spoiled[position] = row, fault
                break
    assert len(spoiled) == len(SAMPLE_FAULTS)
    write_rows(tmp_path / "a.json", rows)
    outcome = check_file(tmp_path / "a.json", params.validate_data, EVERYTHING)
    rejected = {(f.row, f.check): f for f in outcome.findings if f.severity == "rejected"}
    lines = (tmp_path / "a.json").read_text("utf-8").splitlines()
    for position, fault in spoiled.items():
        place = rejected[position, fault.check_id].place
        assert lines[int(place.split()[1]) - 1] == "    {"
    assert outcome.quarantined == len(spoiled) and not outcome.all_kept


def test_broken_rows_and_broken_runs_are_named(tmp_path: Path, rich_row: Row, params: Params) -> None:
    rows = [{**_different(rich_row, number), "score": number} for number in range(3)]
    path = _write_lines(tmp_path / "a.jsonl", rows)
    path.write_text(path.read_text("utf-8") + '{"uuid": NaN}\n[1]\n', encoding="utf-8")
    outcome = check_file(path, params.validate_data, EVERYTHING, licence="MIT")
    assert [(f.row, f.place, f.check) for f in outcome.findings] == [(3, "line 4", 5), (4, "line 5", 5)]
    (whole,) = outcome.run
    assert (whole.row, whole.place, whole.check, whole.severity) == (None, WHOLE_FILE, 2, "run fails")
    assert "score" in whole.detail and outcome.would_fail
    unlicensed = check_file(path, params.validate_data, 0)
    assert [(f.check, f.severity) for f in unlicensed.run if f.check == 3] == [(3, "warning")]


def test_flags_alone_are_fine(tmp_path: Path, rich_row: Row, params: Params) -> None:
    row = deepcopy(rich_row)
    row["uuid"] = "mine"
    outcome = check_file(_write_lines(tmp_path / "a.jsonl", [row]), params.validate_data, 5, "MIT")
    assert outcome.all_kept
    assert (outcome.rows, outcome.kept, outcome.flagged, outcome.quarantined) == (1, 1, 1, 0)
    assert [(f.check, f.severity, f.task_id) for f in outcome.findings] == [(4, "kept, flagged", "mine")]


def test_beyond_the_limit_rejections_come_first_and_the_rest_is_counted(
    tmp_path: Path, rich_row: Row, params: Params
) -> None:
    rows = [{**_different(rich_row, number), "uuid": f"mine-{number}"} for number in range(6)]
    rows[4]["messages"][0]["content"] = " "
    path = _write_lines(tmp_path / "a.jsonl", rows)
    for limit, shown in ((2, [(0, 4), (4, 8)]), (1, [(4, 8)]), (0, [])):
        outcome = check_file(path, params.validate_data, limit)
        assert [(f.row, f.check) for f in outcome.findings] == shown
        assert sum(outcome.not_shown.values()) == 6 - limit
    assert outcome.not_shown == {4: 5, 8: 1}


def test_nothing_is_left_behind(tmp_path: Path, rich_row: Row, params: Params, temporary: Path) -> None:
    path = _write_lines(tmp_path / "a.jsonl", [rich_row])
    check_file(path, params.validate_data, 5)
    (tmp_path / "b.json").write_text("[{", encoding="utf-8")
    with pytest.raises(DataError, match=r"b\.json"):
        check_file(tmp_path / "b.json", params.validate_data, 5)
    assert list(temporary.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.json", "temporary"]


def test_without_a_temporary_folder_it_says_what_to_do(
    tmp_path: Path, rich_row: Row, params: Params, temporary: Path
) -> None:
    path = _write_lines(tmp_path / "a.jsonl", [rich_row])
    shutil.rmtree(temporary)
    with pytest.raises(DataError, match="TMPDIR"):
        check_file(path, params.validate_data, 5)


def test_the_folders_own_bounds_come_before_the_projects(tmp_path: Path, project_root: Path) -> None:
    shipped, words = params_in_force(tmp_path)
    assert "project" in words
    text = (project_root / "params.yaml").read_text("utf-8")
    (tmp_path / "params.yaml").write_text(text.replace("max_tools: 64", "max_tools: 3"), encoding="utf-8")
    own, words = params_in_force(tmp_path)
    assert (own.validate_data.max_tools, shipped.validate_data.max_tools) == (3, 64)
    assert "this folder" in words
    (tmp_path / "params.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(ConfigError):
        params_in_force(tmp_path)


def test_all_kept_wants_both_rows_and_run_to_be_right() -> None:
    def outcome(quarantined: int, would_fail: bool) -> FileCheck:
        findings: list[Finding] = []
        return FileCheck(2, 2 - quarantined, 0, quarantined, findings, [], {}, would_fail)

    assert outcome(0, False).all_kept
    assert not outcome(1, False).all_kept and not outcome(0, True).all_kept
