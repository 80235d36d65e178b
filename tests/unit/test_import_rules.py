"""The rules of the house, read off the code: who may import what, docstrings, and the length of files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

LAYERS = ("envace", "pipeline_steps", "flows")  # each may import itself and those before it
FENCES = {
    "prefect": ("flows/",),
    "mlflow": ("envace/tracking/",),
    "great_expectations": ("envace/data/expectations.py",),
    "verl": ("envace/training/",),
    "ray": ("envace/training/",),
    "starlette": ("envace/serving/",),
    "uvicorn": ("envace/serving/",),
    "vllm": (),  # only ever a command
    "dvc": (),  # only ever a command, and that in one file
}
WITHOUT_TORCH = (
    *(
        f"envace/{name}.py"
        for name in ("types", "config", "errors", "files", "stage", "locks", "processes", "quiet", "workers")
    ),
    *(f"envace/{name}.py" for name in ("params_basis", "params_sample", "params_training", "profiles")),
    *(f"envace/{name}/" for name in ("tools", "rewards", "rehearsal", "data", "report", "endpoints", "serving")),
    *("envace/chat/parser.py", "flows/", "pipeline_steps/"),
)
RUNS_DVC = "flows/dvc.py"
# Imported inside the function that needs them. prefect's decorators and verl's base classes are the exceptions.
HEAVY = ("torch", "transformers", "mlflow", "great_expectations", "matplotlib", "pandas", "prefect", "verl", "ray")
HEAVY_AT_TOP = {
    "prefect": tuple(f"flows/{name}.py" for name in ("evaluate", "promote", "retrain", "stage_task")),
    "mlflow": ("envace/tracking/pyfunc_model.py",),  # MLflow loads this file itself
    "torch": ("envace/training/", "envace/engines/", "envace/algo/"),
    "transformers": ("envace/training/", "envace/engines/"),
    "verl": ("envace/training/",),
    "ray": ("envace/training/",),
}
STEP_LINES, FILE_LINES, MEDIAN_LINES = 100, 500, 120


@dataclass(frozen=True)
class Import:
    """One imported module, and whether that happens when the file is loaded."""

    module: str
    at_top: bool

    @property
    def package(self) -> str:
        return self.module.split(".")[0]


def sources(root: Path) -> dict[str, str]:
    """Path to text of every Python file of the three layers."""
    files = (p for layer in LAYERS for p in sorted((root / layer).rglob("*.py")))
    return {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in files}


def imports(tree: ast.Module) -> Iterator[Import]:
    """All imports of a file. Those under `if TYPE_CHECKING` never run and are not counted as at the top."""
    waiting = [(node, True) for node in tree.body]
    while waiting:
        node, at_top = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import("." * node.level + (node.module or ""), at_top)
            yield from (Import(f"{node.module}.{alias.name}", at_top) for alias in node.names if node.module)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        types_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        waiting += [(child, at_top and not inside and not types_only) for child in ast.iter_child_nodes(node)]


def violations(files: dict[str, str]) -> list[str]:
    """Everything that breaks a rule, in words."""
    found = [v for path, text in files.items() for v in file_violations(path, text)]
    lengths = [len(text.splitlines()) for path, text in files.items() if not path.endswith("__init__.py")]
    if lengths and median(lengths) > MEDIAN_LINES:
        found.append(f"the median file has {median(lengths)} lines, more than {MEDIAN_LINES}")
    return found


def file_violations(path: str, text: str) -> Iterator[str]:
    layer, length, tree = path.split("/")[0], len(text.splitlines()), ast.parse(text)
    if ast.get_docstring(tree) is None:
        yield f"{path}: no docstring that says what it is for"
    if length > (STEP_LINES if layer == "pipeline_steps" else FILE_LINES):
        yield f"{path}: {length} lines"
    for found in set(imports(tree)):
        package = found.package
        if package in LAYERS and LAYERS.index(package) > LAYERS.index(layer):
            yield f"{path}: {layer} must not import {package}"
        if layer == package == "pipeline_steps":
            yield f"{path}: steps talk through files and never import each other"
        if package in FENCES and not path.startswith(FENCES[package] or ("nowhere",)):
            yield f"{path}: {package} is not allowed here"
        if package == "torch" and path.startswith(WITHOUT_TORCH):
            yield f"{path}: torch is not allowed here"
        if package in HEAVY and found.at_top and not path.startswith(HEAVY_AT_TOP.get(package, ("nowhere",))):
            yield f"{path}: import {package} inside the function that needs it"
        if found.module.startswith("."):
            yield f"{path}: relative import"
    if path != RUNS_DVC and any(words(node) for node in ast.walk(tree)):
        yield f"{path}: only {RUNS_DVC} runs dvc"


def words(node: ast.AST) -> bool:
    """Whether a node is the list of a command that runs dvc."""
    if not isinstance(node, ast.List | ast.Tuple):
        return False
    texts = [e.value for e in node.elts if isinstance(e, ast.Constant)]
    return "dvc" in texts and ("-m" in texts or texts[0] == "dvc")


def test_the_code_keeps_the_rules(project_root: Path) -> None:
    files = sources(project_root)
    assert len(files) > 20
    assert violations(files) == []


GOOD = '"""Doc."""\n'


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("envace/a.py", GOOD + "import flows.cli", "must not import flows"),
        ("envace/a.py", GOOD + "def f():\n    from pipeline_steps.b import c", "must not import pipeline_steps"),
        ("pipeline_steps/a.py", GOOD + "from pipeline_steps.b import run", "never import each other"),
        ("pipeline_steps/a.py", GOOD + "def f():\n    import prefect", "prefect is not allowed"),
        ("envace/data/a.py", GOOD + "def f():\n    import great_expectations as gx", "great_expectations is not"),
        ("flows/a.py", GOOD + "def f():\n    from mlflow import MlflowClient", "mlflow is not allowed"),
        ("envace/rollout/a.py", GOOD + "def f():\n    import verl.utils", "verl is not allowed"),
        ("flows/a.py", GOOD + "def f():\n    import uvicorn", "uvicorn is not allowed"),
        ("envace/serving/a.py", GOOD + "def f():\n    import torch", "torch is not allowed"),
        ("flows/dvc.py", GOOD + "import dvc.repo", "dvc is not allowed"),
        ("flows/a.py", GOOD + "import sys\nc = [sys.executable, '-m', 'dvc', 'repro']", "only flows/dvc.py runs dvc"),
        ("envace/rewards/a.py", GOOD + "def f():\n    import torch", "torch is not allowed"),
        ("envace/chat/parser.py", GOOD + "import torch.nn", "torch is not allowed"),
        ("envace/report/a.py", GOOD + "from matplotlib import pyplot", "import matplotlib inside"),
        ("envace/tracking/a.py", GOOD + "try:\n    import mlflow\nfinally:\n    pass", "import mlflow inside"),
        ("envace/a.py", GOOD + "from . import b", "relative import"),
        ("envace/a.py", "x = 1", "no docstring"),
        ("envace/a.py", GOOD + "x = 1\n" * 500, "501 lines"),
        ("pipeline_steps/a.py", GOOD + "x = 1\n" * 100, "101 lines"),
    ],
)
def test_a_seeded_violation_is_caught(path: str, text: str, told: str) -> None:
    assert any(told in violation for violation in file_violations(path, text))


def test_what_is_allowed_is_not_flagged() -> None:
    typing_only = GOOD + "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mlflow import MlflowClient\n"
    assert list(file_violations("envace/tracking/a.py", typing_only)) == []
    assert list(file_violations("flows/a.py", GOOD + "from pipeline_steps.b import c\nimport envace.types")) == []


def test_many_long_files_are_caught() -> None:
    assert violations({f"envace/{i}.py": GOOD + "x = 1\n" * 130 for i in range(3)}) == [
        "the median file has 131 lines, more than 120"
    ]
