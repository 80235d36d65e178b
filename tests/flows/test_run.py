"""The last lines of a run, and what is printed while it goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envace.files import write_json, write_text
from flows import progress
from flows.dvc import StageOutcome
from flows.run import summary


def outcomes(*kinds: str) -> list[StageOutcome]:
    return [StageOutcome("fetch_data", kind, 1.0) for kind in kinds]  # type: ignore[arg-type]


def test_a_summary_counts_stages_and_shows_base_against_trained(finished_project: Callable[..., Path]) -> None:
    project = finished_project()
    ids = {"model_name": "envace-tiny", "version": "3", "aliases": ["challenger"], "run_id": "x", "refusal": None}
    write_json(project / ".envace/registration.json", ids)
    write_text(project / "reports/run/index.html", "<!doctype html>")
    text = "\n".join(summary(outcomes("ran", "cached", "unchanged", "ran"), 61.4, project))
    assert "2 stages run, 1 restored from the cache, 1 unchanged (61 s)" in text
    assert "base (start of training)" in text and "0.690 ± 0.020" in text and "0.830 ± 0.020" in text
    assert "reports/run/index.html" in text and "envace-tiny version 3 (challenger)" in text and "make ui" in text


def test_nothing_changed_is_said_as_such(tmp_path: Path) -> None:
    text = "\n".join(summary(outcomes("unchanged", "unchanged"), 9.0, tmp_path))
    assert "nothing changed: 0 stages run (9 s)" in text and "not evaluated yet" in text and "model:" not in text


def test_progress_names_the_stage_its_place_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    progress.started("train_policy")
    progress.line("step 1")
    progress.ended(StageOutcome("train_policy", "cached", 2.04))
    assert capsys.readouterr().out == (
        "[5/8] train_policy\n      step 1\n      outputs taken from the cache in 2.0 s\n"
    )
