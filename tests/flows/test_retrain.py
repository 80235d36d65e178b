"""The whole flow from the command line, with a real Prefect API, over a project whose stages are shell commands."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

import flows.retrain
from envace.report.headline import METRICS
from flows.dvc import StageOutcome

# Three stages that are shell commands, so that nothing is registered; the rest of the command line is as shipped.
STAGES = ("fetch_data", "train_policy", "write_report")
COMMAND = f"""
import flows.dvc
flows.dvc.STAGES = {STAGES}
import pipeline_steps.register_model as step
step.is_registered = lambda params, root: True
from flows.cli import main
main()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(project_root / "params.yaml", folder)
    blocks = [f"  {n}:\n    cmd: exec sh {n}.sh\n    deps: [{n}.sh]\n    outs: [{n}.out]\n" for n in STAGES]
    (folder / "dvc.yaml").write_text("stages:\n" + "".join(blocks), encoding="utf-8")
    for name in STAGES:
        write_stage(folder, name, f"echo working on {name}; echo {name} > {name}.out")
    subprocess.run(["git", "init", "--quiet", "."], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], cwd=folder, check=True)
    yield folder
    assert not processes_in(folder)


def write_stage(folder: Path, name: str, command: str) -> None:
    (folder / f"{name}.sh").write_text(command + "\n", encoding="utf-8")


def envace(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(folder: Path, *arguments: str) -> tuple[int, str]:
    process = envace(folder, *arguments)
    output, _ = process.communicate(timeout=180)
    return process.returncode, output


def processes_in(folder: Path) -> list[str]:
    """Commands of all processes that work in the project: whatever a run has started has this folder as its own."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def recorded(folder: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / ".envace" / "prefect" / "prefect.db")) as database:
        return database.execute(query).fetchall()


def test_a_first_run_runs_every_stage_and_a_second_none(project: Path) -> None:
    code, output = finished(project, "run")
    assert code == 0, output
    assert "working on train_policy" in output and "[3/3] write_report" in output
    assert "3 stages run, 0 restored from the cache, 0 unchanged" in output
    code, output = finished(project, "run")
    assert code == 0, output
    assert "nothing changed: 0 stages run" in output
    assert "working on" not in output
    assert "Traceback" not in output and "Error" not in output
    stages = f"name in {STAGES}"  # asking for the limit `gpu` is a task of Prefect's own
    states = recorded(project, f"select state_name, count(*) from task_run where {stages} group by 1 order by 1")
    assert states == [("Cached", 3), ("Completed", 3)]
    assert recorded(project, "select count(*) from artifact where key = 'stages'") == [(2,)]
    logged = recorded(project, "select count(*) from log where message = 'working on train_policy'")
    assert logged == [(1,)]


def test_a_failed_stage_ends_the_run_with_its_message(project: Path) -> None:
    write_stage(project, "train_policy", "echo 'train_policy: row 3 of x.jsonl is cut off' >&2; exit 2")
    code, output = finished(project, "run")
    assert code == 1
    assert output.strip().endswith("envace: stage train_policy failed: row 3 of x.jsonl is cut off")
    assert "[3/3]" not in output and "Traceback" not in output
    assert recorded(project, "select state_name from flow_run order by created desc limit 1") == [("Failed",)]


def test_an_interrupt_leaves_no_process(project: Path) -> None:
    write_stage(project, "train_policy", "echo now; sleep 300 & sleep 301; echo 1 > train_policy.out")
    process = envace(project, "run")
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "now":
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert not processes_in(project)
    assert recorded(project, "select state_type from flow_run order by created desc limit 1") == [("CRASHED",)]


def test_wrong_parameters_are_told_at_once(project: Path) -> None:
    original = (project / "params.yaml").read_text(encoding="utf-8")
    misspelt = original.replace("  warmup_steps:", "  warmup_stepz:")
    assert misspelt != original
    (project / "params.yaml").write_text(misspelt, encoding="utf-8")
    code, output = finished(project, "run")
    (project / "params.yaml").write_text(original, encoding="utf-8")
    assert code == 2
    assert "train_policy.warmup_steps: missing" in output and "train_policy.warmup_stepz: unknown key" in output
    assert "Traceback" not in output


def test_an_unknown_stage_to_force_is_refused(project: Path) -> None:
    code, output = finished(project, "run", "--force", "train")
    assert code == 2 and "no such stage" in output


@pytest.mark.parametrize(("last", "keys"), [("train_policy", ["stages"]), ("evaluate_policy", ["stages", "headline"])])
def test_the_figures_of_an_earlier_evaluation_are_not_published(
    last: str, keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []
    for kind in ("table", "markdown"):
        monkeypatch.setattr(flows.retrain, f"create_{kind}_artifact", lambda key, **_: published.append(key))
    (tmp_path / METRICS).parent.mkdir(parents=True)
    (tmp_path / METRICS).write_text("{}", encoding="utf-8")
    flows.retrain._publish([StageOutcome(last, "ran", 1.0)], tmp_path)
    assert published == keys
