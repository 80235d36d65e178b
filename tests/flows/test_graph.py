"""dvc.yaml against the code: every stage names the files it really imports, and the parameters it really reads."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from envace.config import Params
from flows.dvc import STAGES

# How a stage runs, not what it computes: a change here must not train anew.
SECTIONS = set(Params.model_fields) - {"profile"}
PLUMBING = {"envace/__init__.py"} | {
    f"envace/{name}.py"
    for name in (
        *("config", "params_basis", "params_sample", "params_training", "profiles", "strict_yaml"),
        *("errors", "locks", "missing", "processes", "progress", "quiet", "stage", "workers"),
    )
}


@pytest.fixture(scope="module")
def graph(project_root: Path) -> dict[str, dict]:
    return yaml.safe_load((project_root / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def test_the_graph_and_the_flow_have_the_same_stages(graph: dict[str, dict]) -> None:
    assert tuple(graph) == STAGES


@pytest.mark.parametrize("name", STAGES)
def test_no_shell_stays_between_dvc_and_a_stage(name: str, graph: dict[str, dict]) -> None:
    # not every shell replaces itself by its last command, and a stage is told of the death of its parent only
    assert graph[name]["cmd"] == f"exec bin/step {name}"


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_all_code_that_it_imports(name: str, graph: dict[str, dict], project_root: Path) -> None:
    listed = graph[name]["deps"]
    missing = sorted(f for f in imported_files(project_root, name) - PLUMBING if not covered(f, listed))
    assert not missing, f"add to the deps of {name} in dvc.yaml: {missing}"
    code = [d for d in listed if d.endswith(".py") or d.startswith("envace/")]
    assert not [d for d in code if not (project_root / d).exists()]
    unused = [d for d in code if not any(covered(f, [d]) for f in imported_files(project_root, name))]
    assert not unused, f"{name} does not import {unused}"


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_lists_every_section_of_parameters_that_it_reads(
    name: str, graph: dict[str, dict], project_root: Path
) -> None:
    listed = {p.split(".")[0] for p in graph[name]["params"]}
    read: set[str] = set()
    for path in imported_files(project_root, name):
        read |= sections_read(project_root / path)
    # the registry also keeps a copy of all parameters, of which none decides what is registered
    assert read - (set(Params.model_fields) if name == "register_model" else set()) <= listed
    assert name in listed


def test_every_path_that_is_read_is_written_by_an_earlier_stage(graph: dict[str, dict]) -> None:
    written: list[str] = []
    for name, stage in graph.items():
        for path in stage["deps"]:
            if path.split("/")[0] in ("data", "models", "reports"):
                assert covered(path, written), f"{name} reads {path}, which no earlier stage writes"
        written += [next(iter(o)) if isinstance(o, dict) else o for o in stage["outs"] + stage.get("metrics", [])]


def covered(path: str, listed: list[str]) -> bool:
    return any(path == entry or path.startswith(entry.rstrip("/") + "/") for entry in listed)


def imported_files(root: Path, stage: str) -> set[str]:
    """The stage's file and every file of ours that it imports, directly or not, also inside functions."""
    found: set[str] = set()
    waiting = [f"pipeline_steps/{stage}.py"]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += [p for name in imported_names(root / path) for p in files_of(root, name)]
    return found


@cache
def tree_of(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in tree_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"^(?:pkg://)?(envace(?:\.\w+)+)$", node.value))  # modules that others load by name
    return {n for n in names if n.split(".")[0] == "envace"}


def sections_read(path: Path) -> set[str]:
    """Sections read as `params.<section>`."""
    attributes = [n for n in tree_of(path) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
    return {n.attr for n in attributes if isinstance(n.value, ast.Name) and n.value.id == "params"} & SECTIONS


def files_of(root: Path, name: str) -> list[str]:
    """The file of a module, or of the module that an attribute belongs to, with the packages above it."""
    parts = name.split(".")
    stems = ["/".join(parts[:i]) for i in range(1, len(parts) + 1)]
    return [p for stem in stems for p in (f"{stem}/__init__.py", f"{stem}.py") if (root / p).is_file()]
