"""The three data stages, run one after the other in an empty folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.data.task_reader import read_tasks
from envace.errors import ContractError, DataError
from envace.files import sha256_tree
from pipeline_steps import fetch_data, prepare_data, validate_data

SAMPLE = {"seed": 0, "train_tasks": 120, "heldout_tasks": 20, "hard_tasks": 10, "faulty_share": 0.05}
OUTPUTS = ("data/raw", "data/validated", "data/prepared", "reports/validation")


def _with(params: Params, **fetch: Any) -> Params:
    section = params.fetch_data.model_copy(update=fetch)
    return params.model_copy(update={"fetch_data": section})


def _run_all(params: Params) -> None:
    for step in (fetch_data, validate_data, prepare_data):
        step.run(params)


def _read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


@pytest.fixture
def small(params: Params) -> Params:
    return _with(params, sample=params.fetch_data.sample.model_copy(update=SAMPLE))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def test_the_sample_has_conversations_of_the_length_that_is_asked_for(small: Params) -> None:
    fetch_data.run(_with(small, sample=small.fetch_data.sample.model_copy(update={"turns": [2, 3]})))
    for name in ("train", "heldout", "hard"):
        turns = [len(row["outcome"]["turns"]) for row in _read(f"data/raw/{name}.json") if row.get("outcome")]
        assert set(turns) == {2, 3}, name


def test_the_sample_goes_through_all_stages_twice_with_the_same_bytes(
    small: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    _run_all(small)
    told = capsys.readouterr().out
    assert "6 quarantined" in told and "flag recorded_tool_error" in told and "quarantined by check 21" in told
    first = {folder: sha256_tree(Path(folder)) for folder in OUTPUTS}
    _run_all(small)
    assert {folder: sha256_tree(Path(folder)) for folder in OUTPUTS} == first

    source, report, manifest = (
        _read(path)
        for path in ("data/raw/source.json", "reports/validation/validation.json", "data/prepared/manifest.json")
    )
    assert {name: file["rows"] for name, file in source["files"].items()} == {
        "train.json": 120,
        "heldout.json": 20,
        "hard.json": 10,
    }
    assert report["passed"] and report["files"]["train"]["kept"] == 114 and report["quarantined"] == 6
    assert report["expectations"] and all(outcome["success"] for outcome in report["expectations"])
    sizes = {split: counts["tasks"] for split, counts in manifest["splits"].items()}
    assert sizes["train"] + sizes["validation"] == 114 and (sizes["heldout"], sizes["hard"]) == (20, 10)
    tasks = read_tasks(Path("data/prepared/tasks.parquet"))
    assert len(tasks) == 144 and all(task.outcome and task.world for task in tasks)
    flagged = sum("recorded_tool_error" in task.flags for task in tasks)
    assert flagged == report["flags"]["recorded_tool_error"] == manifest["flags"]["recorded_tool_error"]
    assert list(Path(".envace/great_expectations").rglob("index.html"))
    page = Path("reports/validation/validation.md").read_text(encoding="utf-8")
    assert "The data keeps the contract." in page and "| train | 120 | 114 |" in page


def test_own_files_are_copied_and_a_share_is_held_out(small: Params, tmp_path: Path) -> None:
    fetch_data.run(small)
    own = tmp_path / "mine.jsonl"
    rows = _read("data/raw/train.json")
    own.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _run_all(_with(small, source="file", train_path=str(own)))
    assert Path("data/raw/train.jsonl").read_bytes() == own.read_bytes()
    assert not Path("data/raw/heldout.json").exists()
    source = _read("data/raw/source.json")
    assert source["licence"] == "not stated" and str(tmp_path) not in json.dumps(source)
    sizes = {s: c["tasks"] for s, c in _read("data/prepared/manifest.json")["splits"].items()}
    assert sizes["train"] and sizes["validation"] and sizes["heldout"] and not sizes["hard"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("none.json", None, "no such file"),
        ("rows.csv", "a,b", "unknown kind of file"),
        ("rows.json", "", "the file is empty"),
        ("rows.json", '[{"a": 1}', r"rows\.json: ends inside the array"),
    ],
)
def test_files_that_cannot_be_used_are_one_clear_error(
    params: Params, tmp_path: Path, name: str, text: str | None, why: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=why):
        fetch_data.run(_with(params, source="file", train_path=str(tmp_path / name)))
    assert not Path("data/raw").exists()


def test_a_folder_is_not_a_file(params: Params, tmp_path: Path) -> None:
    (tmp_path / "rows.json").mkdir()
    with pytest.raises(DataError, match="this is a folder"):
        fetch_data.run(_with(params, source="file", train_path=str(tmp_path / "rows.json")))


def test_a_broken_contract_leaves_the_report_and_no_data(small: Params) -> None:
    fetch_data.run(_with(small, sample=small.fetch_data.sample.model_copy(update={"faulty_share": 0.2})))
    with pytest.raises(ContractError, match=r"24 of 120 are rejected rows \(20.0%\).*check 37"):
        validate_data.run(small)
    assert not Path("data/validated").exists()
    assert "breaks the contract" in Path("reports/validation/validation.md").read_text(encoding="utf-8")
    with pytest.raises(DataError, match="run the stage validate_data first"):
        prepare_data.run(small)


def test_stages_say_which_stage_is_missing(params: Params) -> None:
    with pytest.raises(DataError, match="run the stage fetch_data first"):
        validate_data.run(params)


def test_a_conversation_in_both_files_stops_the_preparation(small: Params, tmp_path: Path) -> None:
    fetch_data.run(small)
    heldout = _read("data/raw/heldout.json")
    leaked = {**_read("data/raw/train.json")[0], "uuid": "11111111-2222-3333-4444-555555555555"}
    Path(tmp_path / "h.json").write_text(json.dumps([*heldout, leaked]), encoding="utf-8")
    Path(tmp_path / "t.json").write_bytes(Path("data/raw/train.json").read_bytes())
    own = _with(small, source="file", train_path=str(tmp_path / "t.json"), heldout_path=str(tmp_path / "h.json"))
    with pytest.raises(ContractError, match="same user messages"):
        _run_all(own)


def _public_record(project_root: Path) -> Path:
    return Path(os.environ.get("ENVACE_SHARED_DATA") or project_root.parent / "shared/data") / "cm2_public_example.json"


def test_the_public_record_becomes_a_task(params: Params, project_root: Path) -> None:
    path = _public_record(project_root)
    if not path.is_file():
        pytest.skip("cm2_public_example.json is not here")
    own = _with(params, source="file", train_path=str(path))
    no_shares = own.prepare_data.model_copy(update={"validation_share": 0.0, "heldout_share": 0.0})
    _run_all(own.model_copy(update={"prepare_data": no_shares}))
    (task,) = read_tasks(Path("data/prepared/tasks.parquet"))
    assert task.flags == ["error_contradicts_schema", "maybe_unreachable", "recorded_tool_error"]
    assert [len(turn.reference_steps) for turn in task.turns] == [2, 1, 1]
    assert len(task.rubrics[0].criteria) == 14 and task.turns[0].reference_steps[0].reply == ""
