"""The last two stages as processes of their own, on a project whose training has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from envace.files import read_json


def stage(name: str, project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"pipeline_steps.{name}"], cwd=project, capture_output=True, text=True, timeout=180
    )


def test_a_trained_policy_is_registered_and_answers_a_chat(finished_project: Callable[..., Path]) -> None:
    project = finished_project()
    done = stage("register_model", project)
    assert done.returncode == 0, done.stderr
    decision = (project / "reports/registration/registration.json").read_bytes()
    ids = read_json(project / ".envace/registration.json")
    assert ids["aliases"] == ["challenger", "champion"] and ids["refusal"] is None
    print(done.stdout, done.stderr)
