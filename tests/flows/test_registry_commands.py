"""`envace evaluate` and `envace promote`: the flows from the command line, on a registered version and its store."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from envace.config import load_params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, to_raw_record
from envace.data.tables import write_tables
from envace.files import read_json, write_json
from envace.tracking.register import register
from envace.tracking.store import open_store
from tests.conftest import fill_project
from tests.flows.small_project import commit, envace, run, write

NAME = "envace-tiny"
_GRAPH = """stages:
  fetch_data:
    cmd: mkdir -p data/raw && echo raw > data/raw/rows
    outs: [data/raw]
  validate_data:
    cmd: mkdir -p data/validated && cp data/raw/rows data/validated/
    deps: [data/raw]
    outs: [data/validated]
  prepare_data:
    cmd: mkdir -p data && cp -r stuff/prepared data/
    deps: [data/validated, stuff]
    outs: [data/prepared]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, tiny_policy: Path, project_root: Path) -> Path:
    """A policy of random weights is version 1 and champion: it was registered with figures that pass the floors."""
    folder = tmp_path_factory.mktemp("project")
    fill_project(folder, tiny_policy)
    raw = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    raw["rollout"] |= {"max_act_tokens": 4, "max_rehearse_tokens": 4}
    raw["evaluate_policy"]["repeats"] = 1
    write(folder / "params.yaml", yaml.safe_dump(raw))
    world = build_world(0)
    tasks = [
        to_task(to_raw_record(world, c), "heldout", [], "") for c in generate_conversations(world, 2, 0, "heldout")
    ]
    write_tables(folder / "stuff" / "prepared", tasks)
    shutil.copy(folder / "data/prepared/manifest.json", folder / "stuff" / "prepared")
    shutil.copytree(project_root / "bin", folder / "bin")
    write(folder / "dvc.yaml", _GRAPH)
    write(folder / ".gitignore", ".envace\n/data\n/models\n/reports\n")
    run(folder, "git", "init", "--quiet", ".")
    run(folder, sys.executable, "-m", "dvc", "init", "--quiet")
    commit(folder)
    done = register(load_params(folder / "params.yaml"), folder)
    assert (done.model_name, done.version) == (NAME, "1") and "champion" in done.aliases
    return folder


def champion(project: Path) -> str:
    return str(open_store(project).get_model_version_by_alias(NAME, "champion").version)


@pytest.mark.slow
def test_an_evaluation_is_recorded_with_its_version(project: Path) -> None:
    code, out, err = envace(project, "evaluate", "1")
    assert code == 0, out + err
    assert f"recorded with {NAME} version 1" in out and "heldout, tools run by code: reward 0.000" in out
    tags = open_store(project).get_model_version(NAME, "1").tags
    assert (tags["evaluated_reward"], tags["heldout_reward"]) == ("0.0", "0.83")
    client = open_store(project)
    run = client.get_run(tags["evaluated_run_id"])
    assert run.data.tags["kind"] == "evaluation" and len(run.data.tags["git_commit"]) == 40
    stage = client.get_run(run.data.tags["mlflow.parentRunId"])
    flow = client.get_run(stage.data.tags["mlflow.parentRunId"])
    assert flow.info.run_name == f"evaluate {NAME}/1" and flow.data.tags["prefect_run"] == run.data.tags["prefect_run"]
    made = read_json(project / f".envace/evaluations/{NAME}-1/metrics.json")["policies"]["trained"]
    assert made["heldout"]["true"]["rollouts"] == 2


def test_the_gate_is_asked_and_its_refusal_is_the_exit_code(project: Path) -> None:
    evaluation = read_json(project / "reports/evaluation/metrics.json")
    evaluation["policies"]["trained"]["heldout"]["true"]["reward"] = 0.70
    write_json(project / "reports/evaluation/metrics.json", evaluation)
    write(project / "models/policy/note.json", '"worse"')
    assert register(load_params(project / "params.yaml"), project).version == "2"

    code, out, err = envace(project, "promote", "2")
    assert code == 1 and "refused: " in out, out + err
    assert champion(project) == "1"
    code, out, err = envace(project, "promote", f"{NAME}/1")
    assert code == 0 and "is champion" in out, out + err
    assert champion(project) == "1"


@pytest.mark.parametrize(("command", "exit_code"), [("evaluate", 1), ("promote", 2)])
def test_a_version_that_is_not_there_is_told_with_those_that_are(project: Path, command: str, exit_code: int) -> None:
    code, _, err = envace(project, command, "7")
    assert code == exit_code and f"{NAME}/7: no such version" in err and f"{NAME}/1" in err and "Traceback" not in err
