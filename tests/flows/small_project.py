"""A project small enough to be made again in seconds: real git, DVC and registry, stages that are short scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from envace.config import load_params
from envace.files import write_json
from envace.tracking.evidence import read_evidence
from envace.tracking.register import decision_of
from tests.conftest import fill_project

_GRAPH = """stages:
  fetch_data:
    cmd: exec sh bin/fetch_data.sh
    deps: [bin/fetch_data.sh, constraints]
    params: [fetch_data]
    outs: [data/raw]
  train_policy:
    cmd: exec sh bin/train_policy.sh
    deps: [bin/train_policy.sh, data/raw]
    params: [train_policy]
    outs: [data/prepared, models/policy, reports/training, reports/evaluation]
  register_model:
    cmd: exec sh bin/register_model.sh
    deps: [bin/register_model.sh, models/policy]
    outs: [reports/registration/registration.json]
"""
_STAGES = {
    "fetch_data": "mkdir -p data/raw\ncp -r stuff/data/raw/. data/raw/",
    "train_policy": (
        "mkdir -p data models reports\ncp -r data/raw/made/data/prepared data/\n"
        "cp -r data/raw/made/models/policy models/\n"
        "cp -r data/raw/made/reports/training data/raw/made/reports/evaluation reports/"
    ),
    "register_model": "mkdir -p reports/registration\ncp stuff/registration.json reports/registration/",
}


def make_project(folder: Path, policy: Path) -> Path:
    """Write, commit and run it. The caller registers the version: the stage only writes the decision."""
    made = folder / "stuff" / "data" / "raw" / "made"
    made.mkdir(parents=True)
    fill_project(made, policy)
    (made / "params.yaml").rename(folder / "params.yaml")
    params = load_params(folder / "params.yaml")
    write_json(folder / "stuff" / "registration.json", decision_of(params, read_evidence(params, made)))
    for name, script in _STAGES.items():
        write(folder / "bin" / f"{name}.sh", f"set -e\n{script}\n")
    write(folder / "constraints" / "cpu.txt", "a==1\n")
    write(folder / "dvc.yaml", _GRAPH)
    write(folder / ".gitignore", ".envace\n/data\n/models\n/reports\n")
    run(folder, "git", "init", "--quiet", ".")
    run(folder, sys.executable, "-m", "dvc", "init", "--quiet")
    commit(folder)
    run(folder, sys.executable, "-m", "dvc", "repro", "--quiet")
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit(folder: Path) -> None:
    """Commit all that git does not ignore."""
    run(folder, "git", "add", "--all")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "x")


def run(folder: Path, *command: str) -> None:
    """Run a command that must succeed; what it said is in the failure."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def envace(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command of `envace`."""
    code = "from flows.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr
