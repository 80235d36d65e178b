"""Checks between rows and on the source: transitions (19), bytes (1), licence (3), sizes of splits (36)."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.data.checks.source import check_source
from envace.data.sample import World
from envace.data.sample.rows import sample_rows
from envace.data.splits import check_split_sizes
from envace.data.validation import Validation, validate_files
from envace.data.violation_table import read_flags, read_violations
from envace.errors import ContractError
from envace.files import sha256_file

RawRow = dict[str, Any]
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def rows(world: World) -> list[RawRow]:
    return sample_rows(world, 30, 0, "train")


def _validate(folder: Path, params: Params, rows: list[RawRow]) -> Validation:
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    return validate_files(
        {"train": [folder / "train.json"]}, params.validate_data, folder / "out", {"source": "sample"}
    )


def _again(row: RawRow, result: str | None) -> RawRow:
    """The row under another id, saying something else, with another answer to its call if one is given."""
    made = deepcopy(row)
    made["uuid"] = "11111111-2222-3333-4444-555555555555"
    made["messages"][0]["content"] += " Please."
    if result is not None:
        next(message for message in made["messages"] if message["role"] == "tool")["content"] = result
    return made


def _with_a_call(rows: list[RawRow]) -> RawRow:
    """A row of one turn: user, call, result, reply."""
    roles = ["user", "assistant", "tool", "assistant"]
    return next(row for row in rows if [message["role"] for message in row["messages"]] == roles)


def test_the_same_call_with_another_result_flags_both_rows(tmp_path: Path, params: Params, rows: list[RawRow]) -> None:
    row = _with_a_call(rows)
    result = _validate(tmp_path, params, [row, _again(row, '{"other": 1}'), *[r for r in rows if r is not row]])
    found = [v for v in read_violations(tmp_path / "out/violations.parquet") if v.check_id == 19]
    assert {(v.row_index, v.pointer, v.severity) for v in found} >= {
        (0, "/messages/2/content", "W"),
        (1, "/messages/2/content", "W"),
    }
    assert result.flags["stateful_or_inconsistent"] == len({v.row_index for v in found}) >= 2
    assert "stateful_or_inconsistent" in read_flags(tmp_path / "out/violations.parquet")[row["uuid"]]
    assert result.found[19, "W"] == len(found) and result.files["train"].flagged >= 2


def test_the_same_result_in_another_layout_is_the_same(tmp_path: Path, params: Params, rows: list[RawRow]) -> None:
    row = _with_a_call(rows)
    spaced = json.dumps(json.loads(row["messages"][2]["content"]), indent=3)
    result = _validate(tmp_path, params, [row, _again(row, spaced)])
    assert result.found[19, "W"] == 0 and result.files["train"].kept == 2


def test_another_schema_is_another_tool(tmp_path: Path, params: Params, rows: list[RawRow]) -> None:
    row = _with_a_call(rows)
    other = _again(row, '{"other": 1}')
    for tool in other["tools"]:
        tool["function"]["parameters"]["title"] = "another"
    assert _validate(tmp_path, params, [row, other]).found[19, "W"] == 0


def _source(path: Path, **changes: Any) -> dict[str, Any]:
    record = {"rows": 1, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    whole = {
        "source": "hub",
        "repository": "a/b",
        "revision": SHA,
        "licence": "cc-by-4.0",
        "files": {path.name: record},
    }
    return {**whole, **changes}


def test_files_must_be_those_that_were_fetched(tmp_path: Path, params: Params) -> None:
    path = tmp_path / "train.json"
    path.write_text("[1]", encoding="utf-8")
    source, files = _source(path), {"train": [path]}
    assert check_source(source, files, params.validate_data) == []
    path.write_text("[2]", encoding="utf-8")
    assert [(v.check_id, v.severity) for v in check_source(source, files, params.validate_data)] == [(1, "F")]
    path.write_text("[12]", encoding="utf-8")
    (found,) = check_source(source, files, params.validate_data)
    assert found.file == "train" and "4 bytes" in found.detail


@pytest.mark.parametrize(
    ("change", "severities"),
    [
        ({}, []),
        ({"licence": "proprietary"}, ["F"]),
        ({"licence": None}, ["F"]),
        ({"revision": "main"}, ["F"]),
        ({"repository": None}, ["F"]),
        ({"source": "file", "licence": "not stated", "revision": None, "repository": None}, ["W"]),
        ({"source": "file", "revision": None, "repository": None}, []),
        ({"source": "sample", "licence": "ours"}, []),
    ],
)
def test_the_licence_must_be_allowed_and_the_revision_a_commit(
    tmp_path: Path, params: Params, change: dict[str, Any], severities: list[str]
) -> None:
    path = tmp_path / "train.json"
    path.write_text("[]", encoding="utf-8")
    found = check_source(_source(path, **change), {"train": [path]}, params.validate_data)
    assert [v.severity for v in found] == severities and all(v.check_id == 3 for v in found)


def test_large_splits_must_have_the_size_that_was_asked_for(params: Params) -> None:
    asked = params.prepare_data  # validation 10 %, held out 15 %
    check_split_sizes({"train": 7500, "validation": 1000, "heldout": 1500}, 0.15, asked)
    check_split_sizes({"train": 7420, "validation": 1080, "heldout": 1500}, 0.15, asked)
    with pytest.raises(ContractError, match=r"validation has 11\.50%.*check 36"):
        check_split_sizes({"train": 7350, "validation": 1150, "heldout": 1500}, 0.15, asked)
    check_split_sizes({"train": 70, "validation": 20, "heldout": 9}, 0.15, asked)  # too few rows to say
    with pytest.raises(ContractError, match="the split heldout"):
        check_split_sizes({"train": 9000, "validation": 1000, "heldout": 500}, 0.0, asked)
