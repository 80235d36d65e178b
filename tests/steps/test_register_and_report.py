"""The last two stages as processes of their own, on a project whose training has ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envace.files import read_json, write_json

MESSAGES = [{"role": "user", "content": "What is the weather in Łódź?"}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


def stage(name: str, project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"pipeline_steps.{name}"], cwd=project, capture_output=True, text=True, timeout=180
    )


def answers_of(project: Path, models: list[str], rows: Any) -> list[list[str]]:
    """What a user gets from each model who knows nothing but MLflow."""
    code = (
        "import json, sys, mlflow\n"
        "mlflow.set_tracking_uri(sys.argv[1]); mlflow.set_registry_uri(sys.argv[1])\n"
        "rows = json.loads(sys.argv[2])\n"
        "print(json.dumps([mlflow.pyfunc.load_model(m).predict(rows) for m in sys.argv[3:]]))"
    )
    uri = f"sqlite:///{project}/.envace/mlflow/mlflow.db"
    command = [sys.executable, "-c", code, uri, json.dumps(rows), *models]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_policy_is_registered_answers_a_chat_and_is_reported(finished_project: Callable[..., Path]) -> None:
    project = finished_project()
    done = stage("register_model", project)
    assert done.returncode == 0, done.stderr
    assert "envace-tiny version 1: challenger, champion" in done.stdout
    decision = project / "reports/registration/registration.json"
    first = decision.read_bytes()
    ids = read_json(project / ".envace/registration.json")
    assert ids["aliases"] == ["challenger", "champion"] and ids["refusal"] is None

    # the checkpoint in the registry is a copy: it answers without the project's own one
    shutil.rmtree(project / "models")
    rows = [{"messages": MESSAGES, "tools": TOOLS}, {"messages": MESSAGES}]
    first_answers, again = answers_of(project, ["models:/envace-tiny@champion", "models:/envace-tiny/1"], rows)
    assert len(first_answers) == 2 and all(isinstance(a, str) for a in first_answers)
    assert first_answers == again, "greedy answers are the same each time"

    finished_project()
    assert stage("register_model", project).returncode == 0
    assert decision.read_bytes() == first, "nothing in it depends on time, ids or what the registry held"

    counts = {"rows": 400, "kept": 390, "flagged": 4, "quarantined": 10}
    write_json(project / "reports/validation/validation.json", {"files": {"train": counts}})
    done = stage("write_report", project)
    assert done.returncode == 0, done.stderr
    report = project / "reports/run"
    first_report = {p.name: p.read_bytes() for p in report.iterdir()}
    assert {"index.html", "learning_curve.png"} <= set(first_report)
    assert stage("write_report", project).returncode == 0
    assert {p.name: p.read_bytes() for p in report.iterdir()} == first_report


def test_a_missing_input_is_one_message(finished_project: Callable[..., Path]) -> None:
    project = finished_project()
    done = stage("write_report", project)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "write_report: reports/validation/validation.json: not found; stage validate_data writes it\n"
    assert not (project / "reports/run").exists()
