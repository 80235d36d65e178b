"""The pass over whole files: nothing is lost, and what breaks the contract as a whole is a failure."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params, ValidateDataParams
from envace.data.checks import Violation
from envace.data.sample import World
from envace.data.sample.rows import sample_rows
from envace.data.validation import Validation, validate_files
from envace.data.violation_table import read_violations

RawRow = dict[str, Any]


@pytest.fixture(scope="module")
def rows(world: World) -> list[RawRow]:
    return sample_rows(world, 60, 0, "train")


@pytest.fixture(scope="module")
def bounds(params: Params) -> ValidateDataParams:
    return params.validate_data


def _validate(folder: Path, bounds: ValidateDataParams, **files: list[RawRow] | str) -> Validation:
    paths = {}
    for name, rows in files.items():
        paths[name] = [folder / f"{name}.jsonl"]
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        paths[name][0].write_text(text, encoding="utf-8")
    return validate_files(paths, bounds, folder / "out", {"source": "sample"})


def _violations(folder: Path) -> list[Violation]:
    return list(read_violations(folder / "out/violations.parquet"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_in_are_rows_kept_and_quarantined(tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow]) -> None:
    lines = [json.dumps(row) for row in rows]
    lines[3] = '{"uuid": "a", "uuid": "b"}'
    lines[5] = lines[5].replace('"weight": ', '"weight": NaN, "was": ', 1)
    lines[7] = "[]"
    result = _validate(tmp_path, bounds, train="\n".join(lines) + "\n")
    counts = result.files["train"]
    assert (counts.rows, counts.kept, counts.quarantined, counts.without_reason) == (60, 57, 3, 0)
    quarantined = _lines(tmp_path / "out/quarantine.jsonl")
    assert [(q["row_index"], q["reasons"][0]["check"]) for q in quarantined] == [(3, 5), (5, 5), (7, 5)]
    assert quarantined[0]["row_text"] == lines[3] and quarantined[0]["place"] == "line 4"
    assert _lines(tmp_path / "out/train.jsonl") == [row for n, row in enumerate(rows) if n not in (3, 5, 7)]


def test_the_first_of_two_rows_is_kept(tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow]) -> None:
    same_id = {**rows[1], "uuid": rows[0]["uuid"]}
    same_task = {**rows[0], "uuid": rows[2]["uuid"].replace("-", "0")}
    _validate(tmp_path, bounds, train=[rows[0], same_id, same_task], heldout=[{**rows[3], **same_id}])
    found = {(v.file, v.row_index, v.check_id) for v in _violations(tmp_path) if v.severity == "R"}
    assert found == {("train", 1, 4), ("train", 2, 35), ("heldout", 0, 4)}


def _with_error_result(row: RawRow) -> RawRow:
    made = deepcopy(row)
    for message in made["messages"]:
        if message["role"] == "tool":
            message["content"] = '{"error": "down"}'
    return made


def _with_lost_snippets(row: RawRow) -> RawRow:
    made = deepcopy(row)
    for item in (item for items in made["checklists"][0] for item in items):
        item["evidence"][0]["snippet"] = "nowhere to be found"
    return made


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (2, lambda rows: []),
        (2, lambda rows: [{**rows[0], "colour": "red"}, *rows[1:]]),
        (17, lambda rows: [_with_error_result(row) for row in rows]),
        (30, lambda rows: [_with_lost_snippets(row) for row in rows]),
        (37, lambda rows: [{**row, "tools": []} if n < 10 else row for n, row in enumerate(rows)]),
        (37, lambda rows: [{**row, "tools": []} for row in rows[:5]]),
    ],
)
def test_a_file_that_breaks_the_contract_fails_the_run(
    tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow], check: int, change: Any
) -> None:
    changed = change(rows)
    text = "".join(json.dumps(row) + "\n" for row in changed) or "[]"
    failures = _validate(tmp_path, bounds, train=text).failures
    assert check in {failure.check_id for failure in failures}
    assert all(failure.severity == "F" for failure in failures)


def test_shares_are_not_judged_on_few_rows(tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow]) -> None:
    few = [_with_error_result(rows[0]), {**rows[1], "tools": []}, *rows[2:40]]
    assert _validate(tmp_path, bounds, train=few).failures == []


def test_an_overlong_row_is_quarantined_unread(tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow]) -> None:
    long = json.dumps({**rows[0], "uuid": "x" * 2_000_000})
    _validate(tmp_path, bounds, train=f"{long}\n{json.dumps(rows[1])}\n")
    (violation,) = [v for v in _violations(tmp_path) if v.severity == "R"]
    assert (violation.check_id, violation.row_index) == (34, 0)
    assert len(_lines(tmp_path / "out/quarantine.jsonl")[0]["row_text"]) == 2000


def test_broken_characters_can_be_quarantined(tmp_path: Path, bounds: ValidateDataParams, rows: list[RawRow]) -> None:
    broken = deepcopy(rows[0])
    broken["messages"][0]["content"] = "hi \ud83d"
    broken["tools"][0]["function"]["name"] = "\ud83d"
    result = _validate(tmp_path, bounds, train=[broken, rows[1]])
    assert result.files["train"].quarantined == 1
    assert _lines(tmp_path / "out/quarantine.jsonl")[0]["row"] == broken


def _public_record() -> Path:
    folder = os.environ.get("ENVACE_SHARED_DATA") or Path(__file__).resolve().parents[3].parent / "shared/data"
    return Path(folder) / "cm2_public_example.json"


@pytest.mark.skipif(not _public_record().is_file(), reason="cm2_public_example.json is not here")
def test_the_public_record_is_kept_with_its_three_flags(tmp_path: Path, bounds: ValidateDataParams) -> None:
    result = validate_files({"train": [_public_record()]}, bounds, tmp_path / "out", {"source": "sample"})
    assert (result.files["train"].rows, result.files["train"].kept) == (1, 1)
    found = {(v.check_id, v.severity, v.flag) for v in _violations(tmp_path)}
    assert found == {
        (17, "W", "recorded_tool_error"),
        (18, "W", "error_contradicts_schema"),
        (31, "W", "maybe_unreachable"),
    }
    assert result.failures == [] and result.files["train"].evidence.unlocated == 0
