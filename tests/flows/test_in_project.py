"""Commands that keep state are refused outside a project, and leave nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from envace.errors import ConfigError
from flows.cli import app

COMMANDS = (
    "status",
    "ui",
    "evaluate",
    "promote",
    "lineage m/1",
    "reproduce m/1",
    "deploy",
    "worker",
    "start nightly",
    "watch",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_is_no_project_is_named_and_stays_as_it_is(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").touch()
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception).startswith(f"{tmp_path}: not a project's root (no params.yaml)")
    assert [path.name for path in tmp_path.iterdir()] == ["dvc.yaml"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_given_anywhere(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [command.split()[0], "--help"])
    assert done.exit_code == 0 and "Usage" in done.output
