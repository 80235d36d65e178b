"""P1 and S3 for `envace run` as it is: flow, Prefect, DVC, verl and MLflow under the guard, a secret at hand."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from envace.config import Params, parse_params
from tests.e2e.project import changed
from tests.flows.small_project import commit, run
from tests.security.conftest import SECRET, VARIABLE, environment, foreign, watched

CODE = (".dvc/config", ".dvcignore", ".gitignore", "accepted_profile.json", "bin", "constraints", "dvc.yaml", "envace")
CODE += ("flows", "harnesses", "pipeline_steps", "profiles", "pyproject.toml")
RUN = [sys.executable, "-c", "from flows.cli import main; main()", "run"]


@pytest.fixture
def project(params: Params, project_root: Path, tmp_path: Path) -> Path:
    """The code as shipped in a repository of its own, with parameters that take two minutes; they name the secret."""
    folder = tmp_path / "project"
    for name in CODE:
        source, target = project_root / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    raw = changed(params)
    raw["fetch_data"]["sample"] |= {"train_tasks": 60, "heldout_tasks": 6, "hard_tasks": 2}
    raw["build_base_model"]["faulty"] |= {"steps": 2}
    raw["rollout"] |= {"max_act_tokens": 32, "max_rehearse_tokens": 32}
    raw["evaluate_policy"]["repeats"] = 1
    raw["reward"]["judge"]["endpoint"] |= {"api_key_env": VARIABLE}
    parse_params(raw, "the test's parameters")
    (folder / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    run(folder, "git", "init", "--quiet", ".")
    commit(folder)
    return folder


@pytest.mark.slow
def test_a_whole_run_needs_no_network_and_keeps_a_secret(project: Path, tmp_path: Path) -> None:
    log, commands = tmp_path / "log", set[str]()
    log.touch()
    code, said = watched(RUN, project, environment(log), commands)
    assert code == 0, said[-3000:]
    assert "8 stages run" in said and SECRET not in said
    assert (project / ".envace/prefect/prefect.db").is_file() and (project / ".envace/mlflow/mlflow.db").is_file()
    assert not foreign(log.read_text(encoding="utf-8").splitlines())
    assert not [command for command in commands if SECRET in command]
    files = [path for path in project.rglob("*") if path.is_file()]
    assert len(files) > 100
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
