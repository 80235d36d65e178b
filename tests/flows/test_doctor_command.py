"""`envace doctor` as a command: lines or JSON, and an exit code that scripts can use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envace.doctor import examination
from envace.doctor.finding import Finding, ok, problem, warning
from flows.cli import app

SOUND, ODD, BROKEN = ok("cores", "2"), warning("git", "3 changed files", "commit"), problem("pins", "no x", "install")


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the doctor find what is given."""

    def make(*findings: Finding) -> None:
        def examine(root: Path = Path()) -> Iterator[Finding]:
            yield from findings

        monkeypatch.setattr(examination, "examine", examine)

    return make


def test_a_warning_stops_nothing_and_a_problem_is_exit_code_1(diagnosed: Any) -> None:
    diagnosed(SOUND, ODD)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0 and "-> commit" in done.output and done.output.endswith("0 problems, 1 warnings\n")
    diagnosed(SOUND, ODD, BROKEN)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1 and "PROBLEM  pins: no x" in done.output


def test_as_json(diagnosed: Any) -> None:
    diagnosed(SOUND, BROKEN)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 1
    assert [(f["about"], f["level"]) for f in json.loads(done.output)] == [("cores", "ok"), ("pins", "problem")]


def test_all_checks_together_on_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVACE_PYTHON", "/bin/false")
    found = {f.about: f.level for f in examination.examine(tmp_path)}
    assert found["params"] == found["pins"] == found["verl"] == found["dvc"] == "problem"
    assert {"cores", "memory", "disk", "python", "MLflow", "Prefect", "git", "locks"} <= set(found)
