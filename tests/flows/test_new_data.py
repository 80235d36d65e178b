"""New data: no announcement with parameters that no run would have, and no run on other data than was announced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import flows.new_data
from envace.config import load_params
from envace.errors import ConfigError
from envace.files import write_text
from envace.freshness import source_sha256
from envace.profiles import fill_in
from flows.git import git
from flows.new_data import announce
from flows.retrain import _require_data

WHO = ("-c", "user.name=t", "-c", "user.email=t@t")


def name_data(project: Path, path: str) -> None:
    import yaml

    text = (project / "params.yaml").read_text(encoding="utf-8")
    own = {"fetch_data.source": "file", "fetch_data.train_path": path, "fetch_data.licence": "MIT"}
    write_text(project / "params.yaml", yaml.safe_dump(fill_in(yaml.safe_load(text), own), sort_keys=False))


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    """A repository whose params.yaml names a raw file of the user, with two that it could name."""
    shutil.copy(project_root / "params.yaml", tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(f'"{name}"\n', encoding="utf-8")
    name_data(tmp_path, "one.jsonl")
    git(tmp_path, "init", "--quiet", ".")
    git(tmp_path, "add", "params.yaml")
    git(tmp_path, *WHO, "commit", "--quiet", "-m", "start")
    return tmp_path


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contents that were announced, instead of telling a server."""
    found: list[str] = []

    async def note(content: str, name: str) -> None:
        found.append(content)

    monkeypatch.setattr(flows.new_data, "_send", note)
    return found


def test_nothing_is_announced_while_the_parameters_are_not_committed(project: Path, sent: list[str]) -> None:
    assert announce(project) and len(sent) == 1
    assert announce(project) is None
    name_data(project, "two.jsonl")
    with pytest.raises(ConfigError, match="git commit params"):
        announce(project)
    assert len(sent) == 1
    git(project, *WHO, "commit", "--quiet", "--all", "-m", "two")
    assert announce(project) == sent[1] != sent[0]


def test_a_run_on_other_data_than_it_was_announced_for_is_refused(project: Path) -> None:
    content = source_sha256(load_params(project / "params.yaml"), project)
    _require_data(project, content)
    _require_data(project, None)
    name_data(project, "two.jsonl")
    with pytest.raises(ConfigError, match=f"new data {content[:16]}.*Commit params.yaml"):
        _require_data(project, content)
