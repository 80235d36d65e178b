"""An experiment takes over the project's base policy only where DVC's own lock says that it is the one to be built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from envace.config import Params, parse_params
from envace.experiment.project_base import project_base

STAGE = {
    "cmd": "exec sh build.sh",
    "deps": ["build.sh", "code"],
    "params": ["build_base_model", "fetch_data.sample"],
    "outs": ["models/base", "models/references"],
}
BUILD = (
    "mkdir -p models/base/deep models/references/clean\n"
    "echo weights > models/base/model\necho b > models/base/deep/b\necho é > models/base/A\n"
    "echo clean > models/references/clean/model\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Path:
    """A project whose build_base_model DVC has really run."""
    root = tmp_path_factory.mktemp("built")
    shutil.copy(project_root / "params.yaml", root)
    (root / "build.sh").write_text(BUILD, encoding="utf-8")
    for name, text in (("a.py", "x = 1\n"), ("b/c.py", "y = 2\n")):
        (root / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "code" / name).write_text(text, encoding="utf-8")
    (root / ".dvcignore").write_bytes((project_root / ".dvcignore").read_bytes())
    (root / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"build_base_model": STAGE}}), encoding="utf-8")
    for command in (
        ["git", "init", "-q"],
        [sys.executable, "-m", "dvc", "init", "-q"],
        [sys.executable, "-m", "dvc", "repro", "-q"],
    ):
        subprocess.run(command, cwd=root, check=True)
    return root


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    """A copy of it, to spoil."""
    return Path(shutil.copytree(built, tmp_path / "project", symlinks=False))


def test_what_dvc_has_made_is_known(project: Path, params: Params) -> None:
    assert project_base(project, params) == (project / "models/base", project / "models/references")
    cached = project / "code/__pycache__/a.pyc"  # what Python leaves beside code is not code
    cached.parent.mkdir()
    cached.write_bytes(b"x")
    assert project_base(project, params) is not None


@pytest.mark.parametrize("section", ["build_base_model", "fetch_data"])
def test_other_params_are_seen(project: Path, params: Params, section: str) -> None:
    raw = params.model_dump(mode="json")
    (raw["build_base_model"] if section == "build_base_model" else raw["fetch_data"]["sample"])["seed"] = 1
    assert project_base(project, parse_params(raw, "")) is None
    raw = params.model_dump(mode="json")
    raw["train_policy"]["steps"] = 3  # no concern of the base
    assert project_base(project, parse_params(raw, "")) is not None


@pytest.mark.parametrize(
    "path", ["code/b/c.py", "build.sh", "models/base/model", "models/base/more", "models/references/clean/model"]
)
def test_a_changed_file_is_seen(project: Path, params: Params, path: str) -> None:
    (project / path).unlink(missing_ok=True)
    (project / path).write_text("other", encoding="utf-8")
    assert project_base(project, params) is None


@pytest.mark.parametrize("lock", [None, "stages: {}\n", "[1", "stages: {build_base_model: {params: {}}}\n"])
def test_a_lock_that_says_nothing_is_no_reason_to_copy(project: Path, params: Params, lock: str | None) -> None:
    if lock is None:
        (project / "dvc.lock").unlink()
    else:
        (project / "dvc.lock").write_text(lock, encoding="utf-8")
    assert project_base(project, params) is None
