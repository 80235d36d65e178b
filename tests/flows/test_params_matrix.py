"""Every key of params.yaml against DVC: a changed one makes exactly the stages out of date that list it.

The graph is the project's own with its parameters and data. Its code is left out, and every command only writes the
stage's outputs, so that a whole `dvc repro` takes seconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

# Writes the files and folders that are given after the stage's name: the same bytes each time.
STUB = """
import pathlib, sys
name, *outs = sys.argv[1:]
with open("ran.log", "a") as log: print(name, file=log)
for out in map(pathlib.Path, outs):
    folder = out if "." not in out.name else out.parent
    folder.mkdir(parents=True, exist_ok=True)
    (out if out != folder else out / "part").write_text(str(out))
"""
# One process, and the graph read once, for all keys: what `dvc status` asks each stage, under each of the given files.
ASK = """
import json, pathlib, sys
from dvc.repo import Repo
answers = {}
with Repo() as repo, repo.lock:
    stages = list(repo.index.stages)
    for key, text in json.load(sys.stdin).items():
        pathlib.Path("params.yaml").write_text(text)
        answers[key] = {name: found for stage in stages for name, found in stage.status().items()}
print(json.dumps(answers))
"""


def without_code(graph: dict[str, Any]) -> dict[str, Any]:
    """The stages with their data, parameters and outputs, each by the stub."""
    stages = {}
    read = {path for stage in graph.values() for path in stage["deps"]}
    for name, stage in graph.items():
        outs = [*stage["outs"], *stage.get("metrics", [])]
        deps = [d for d in stage["deps"] if d.split("/")[0] in ("data", "models", "reports")]
        within = sorted(path for path in read for out in outs if path.startswith(f"{out}/"))
        command = " ".join([f'"{sys.executable}"', "stub.py", name, *outs, *within])
        stages[name] = {"cmd": command, "deps": deps, "params": stage["params"], "outs": outs}
    return {"stages": stages}


@pytest.fixture(scope="module")
def graph(project_root: Path) -> dict[str, Any]:
    return yaml.safe_load((project_root / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


@pytest.fixture(scope="module")
def project(project_root: Path, graph: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which every stage has run."""
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "dvc.yaml").write_text(yaml.safe_dump(without_code(graph), sort_keys=False), encoding="utf-8")
    (folder / "stub.py").write_text(STUB, encoding="utf-8")
    shutil.copy(project_root / "params.yaml", folder / "params.yaml")
    for command in (["init", "--no-scm", "--quiet"], ["repro", "--quiet"]):
        subprocess.run([sys.executable, "-m", "dvc", *command], cwd=folder, check=True, timeout=180)
    return folder


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every value that is no section."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path


def changed(params: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The parameters with another value at `path`. DVC compares values and asks for no sense in them."""
    other = deepcopy(params)
    *sections, last = path
    place = other
    for section in sections:
        place = place[section]
    old = place[last]
    kinds: dict[type, Any] = {bool: lambda: not old, int: lambda: old + 1, float: lambda: old * 1.5 + 0.001}
    place[last] = kinds.get(type(old), lambda: [old, "other"])()
    return other


def listing(graph: dict[str, Any], path: tuple[str, ...]) -> set[str]:
    """The stages that list a key, or a section that it is in."""
    names = {".".join(path[:depth]) for depth in range(1, len(path) + 1)}
    return {name for name, stage in graph.items() if names & set(stage["params"])}


@pytest.mark.parametrize("share", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_a_changed_key_makes_exactly_the_stages_out_of_date_that_list_it(
    project: Path, graph: dict[str, Any], share: int
) -> None:
    """`share`: every how many keys are tried; all of them take a minute."""
    text = (project / "params.yaml").read_text(encoding="utf-8")
    params = yaml.safe_load(text)
    paths = {".".join(path): path for path in list(leaves(params))[::share]}
    asked = {"": text, **{key: yaml.safe_dump(changed(params, path)) for key, path in paths.items()}}
    command = [sys.executable, "-c", ASK]
    try:
        done = subprocess.run(
            command, cwd=project, input=json.dumps(asked), capture_output=True, text=True, timeout=600
        )
    finally:
        (project / "params.yaml").write_text(text, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers.pop("") == {}, "nothing is out of date after a run"
    wrong = {
        key: (sorted(answers[key]), sorted(listing(graph, path)))
        for key, path in paths.items()
        if set(answers[key]) != listing(graph, path)
    }
    assert not wrong, "key: (out of date, listed by)"
    assert len(paths) > 100 / share and {len(found) for found in answers.values()} >= {0, 1, 2}
    for key, found in answers.items():
        for reasons in found.values():
            (told,) = [reason["changed deps"]["params.yaml"] for reason in reasons]
            assert any(key == name or key.startswith(f"{name}.") for name in told), "it is named as the reason"


def test_later_stages_run_again_only_where_their_inputs_changed(project: Path) -> None:
    text = (project / "params.yaml").read_text(encoding="utf-8")
    lock = (project / "dvc.lock").read_bytes()
    log = project / "ran.log"

    def repro() -> list[str]:
        log.write_text("", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "dvc", "repro", "--quiet"], cwd=project, check=True, timeout=180)
        return log.read_text(encoding="utf-8").split()

    assert repro() == [] and (project / "dvc.lock").read_bytes() == lock
    (project / "params.yaml").write_text(text.replace("warmup_steps: 5", "warmup_steps: 6"), encoding="utf-8")
    assert repro() == ["train_policy"], "its outputs are the same bytes, so nothing after it runs"
    (project / "params.yaml").write_text(text, encoding="utf-8")
    assert repro() == [] and (project / "dvc.lock").read_bytes() == lock
