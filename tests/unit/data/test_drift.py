"""Profiles say what the rows are like, and drift from an accepted version is found beyond its bound and not before."""

from __future__ import annotations

import json
import statistics
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.data.drift import ACCEPTED, PROFILE, accept, compare, read_profile, warnings
from envace.data.sample import World
from envace.data.sample.rows import sample_rows
from envace.data.validation import validate_files
from envace.data.validation_report import profile_record
from envace.errors import DataError
from envace.files import write_json

SOURCE = {"source": "sample", "origin": "made here"}


@pytest.fixture(scope="module")
def rows(world: World) -> list[dict[str, Any]]:
    return sample_rows(world, 80, 0, "train")


@pytest.fixture(scope="module")
def profile(rows: list[dict[str, Any]], params: Params, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("profile")
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    result = validate_files({"train": [folder / "train.json"]}, params.validate_data, folder / "out", SOURCE)
    return profile_record(result, SOURCE)


def test_a_profile_has_the_figures_of_the_rows(profile: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    found = profile["files"]["train"]
    turns = sorted(sum(message["role"] == "user" for message in row["messages"]) for row in rows)
    assert found["rows"] == 80
    assert found["turns"]["mean"] == round(statistics.mean(turns), 4)
    assert (found["turns"]["min"], found["turns"]["max"]) == (turns[0], turns[-1])
    assert (found["turns"]["p50"], found["turns"]["p95"]) == (turns[39], turns[75])
    items = [item["focus_on"] for row in rows for turn in row["checklists"][0] for item in turn]
    share = items.count("assistant.tool_calls") / len(items)
    assert found["focus_mix"]["assistant.tool_calls"] == round(share, 4)
    assert sum(found["focus_mix"].values()) == pytest.approx(1, abs=1e-3)


def test_a_version_does_not_drift_from_itself(profile: dict[str, Any]) -> None:
    drifts = compare(profile, profile, 0.25)
    assert len(drifts) >= 5 and not any(drift.is_beyond for drift in drifts) and warnings(drifts) == []


@pytest.mark.parametrize(("factor", "beyond"), [(1.2, False), (0.8, False), (1.3, True), (0.7, True)])
def test_means_may_move_by_a_quarter(profile: dict[str, Any], factor: float, beyond: bool) -> None:
    now = deepcopy(profile)
    now["files"]["train"]["tools"]["mean"] *= factor
    found = warnings(compare(now, profile, 0.25))
    assert [(v.check_id, v.severity) for v in found] == [(38, "W")] * beyond
    assert all("mean tools" in v.detail for v in found)


def test_the_mix_of_items_may_not_turn(profile: dict[str, Any]) -> None:
    now = deepcopy(profile)
    mix = now["files"]["train"]["focus_mix"]
    mix["assistant.content.thinking"] += 0.5
    mix["assistant.tool_calls"] -= 0.2
    found = [v.detail for v in warnings(compare(now, profile, 0.25))]
    assert len(found) == 2 and "assistant.content.thinking" in "".join(found)


def test_another_data_set_has_nothing_to_drift_from(profile: dict[str, Any]) -> None:
    assert compare({**profile, "dataset": "another"}, profile, 0.25) == []


def test_accepting_keeps_the_current_profile(
    profile: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="run the stage validate_data first"):
        accept()
    write_json(PROFILE, profile)
    accept()
    assert read_profile(ACCEPTED) == profile
    ACCEPTED.write_text('{"files": 3}', encoding="utf-8")
    with pytest.raises(DataError, match="not a profile"):
        read_profile(ACCEPTED)
