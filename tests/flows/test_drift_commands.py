"""`envace data accept` and `envace data drift`, as typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from envace.data.drift import ACCEPTED, PROFILE
from envace.files import read_json, write_json
from flows.cli import app

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose data was validated and is what was accepted: the sample as shipped."""
    monkeypatch.chdir(tmp_path)
    for name in ("params.yaml", "accepted_profile.json"):
        (tmp_path / name).write_bytes((project_root / name).read_bytes())
    write_json(PROFILE, read_json(ACCEPTED))


def _move(name: str, factor: float) -> None:
    profile = read_json(PROFILE)
    profile["files"]["train"][name]["mean"] *= factor
    write_json(PROFILE, profile)


def test_no_drift_is_exit_code_0() -> None:
    done = RUNNER.invoke(app, ["data", "drift", "--exit-code"])
    assert done.exit_code == 0 and "within" in done.output and "BEYOND" not in done.output


def test_drift_is_an_exit_code_on_request_only() -> None:
    _move("items", 1.5)
    told = RUNNER.invoke(app, ["data", "drift"])
    assert told.exit_code == 0 and "BEYOND  mean items" in told.output and "+50.0%" in told.output
    assert RUNNER.invoke(app, ["data", "drift", "--exit-code"]).exit_code == 1


def test_what_is_accepted_has_not_drifted() -> None:
    _move("items", 1.5)
    assert RUNNER.invoke(app, ["data", "accept"]).exit_code == 0
    assert RUNNER.invoke(app, ["data", "drift", "--exit-code"]).exit_code == 0


def test_without_validated_data_there_is_one_clear_error() -> None:
    PROFILE.unlink()
    for command in ("accept", "drift"):
        done = RUNNER.invoke(app, ["data", command])
        assert done.exit_code == 2 and "run the stage validate_data first" in done.stderr
