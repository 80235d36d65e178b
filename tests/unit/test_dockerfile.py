"""The images' recipe agrees with the project's pins, copies only the project, and runs as an ordinary user."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ALLOWED = {
    *("pyproject.toml", "README.md", "LICENSE", "params.yaml", "dvc.yaml", "accepted_profile.json", ".dvcignore"),
    *(".dvc/config", "bin", "constraints", "profiles", "envace", "flows", "harnesses", "pipeline_steps"),
}
INSTALLED = {"cpu": ["cpu.txt"], "gpu": ["gpu-pipeline.txt", "gpu.txt"]}
EXTRA_OF = {"cpu.txt": "cpu", "gpu-pipeline.txt": "pipeline", "gpu.txt": "gpu"}


@pytest.fixture(scope="module")
def stages(project_root: Path) -> dict[str, list[list[str]]]:
    """The instructions of each stage as lists of words; those before the first one under ""."""
    text = (project_root / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    found: dict[str, list[list[str]]] = {"": []}
    stage = ""
    for words in (line.split() for line in lines if line.strip()):
        if words[0] == "FROM":
            stage = words[words.index("AS") + 1]
            found[stage] = []
        found[stage].append(words)
    return found


@pytest.fixture(scope="module")
def pyproject(project_root: Path) -> dict[str, list[str]]:
    """Requirements by extra; those of the project itself under ""."""
    project = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def pins(path: Path) -> dict[str, str]:
    """Versions by normalised name; every line must be one exact version."""
    lines = [x.split("#")[0].split(";")[0].strip() for x in path.read_text(encoding="utf-8").splitlines()]
    pairs = [line.split("==") for line in lines if line]
    assert all(len(pair) == 2 for pair in pairs), [pair for pair in pairs if len(pair) != 2]
    return {normalised(name): version for name, version in pairs}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.split("[")[0]).lower()


@pytest.mark.parametrize("file", EXTRA_OF)
def test_what_pyproject_pins_is_what_is_installed(
    project_root: Path, pyproject: dict[str, list[str]], file: str
) -> None:
    closure = pins(project_root / "constraints" / file)
    for requirement in [*pyproject[""], *pyproject[EXTRA_OF[file]]]:
        name = normalised(re.split(r"[<>=!~ ]", requirement)[0])
        assert name in closure, f"{requirement} is not in constraints/{file}"
        if "==" in requirement:
            assert closure[name] == requirement.split("==")[1], requirement


def test_all_environments_have_the_same_pipeline_tools(project_root: Path) -> None:
    cpu, pipeline, gpu = (pins(project_root / "constraints" / file) for file in EXTRA_OF)
    assert pipeline.items() <= cpu.items(), dict(pipeline.items() - cpu.items())
    for name in ("dvc", "great-expectations", "mlflow", "transformers", "verl", "ray", "tensordict", "transferqueue"):
        assert cpu[name] == gpu[name], name
    assert "prefect" not in gpu and "torch" not in pipeline


@pytest.mark.parametrize("target", INSTALLED)
def test_an_image_installs_its_closures_and_nothing_by_a_range(
    stages: dict[str, list[list[str]]], project_root: Path, target: str
) -> None:
    commands = " && ".join(" ".join(words[1:]) for words in stages[target] if words[0] == "RUN").split("&&")
    installs = [shlex.split(c) for c in commands if "pip install" in c]
    assert all(re.fullmatch(r"/opt/\w+/bin/pip", words[0]) for words in installs)
    closures = [(w[0].split("/")[2], Path(w[-1]).name) for w in installs if w[-2] == "-r" and "--no-deps" in w]
    assert [file for _, file in closures] == INSTALLED[target]
    versions = {venv: pins(project_root / "constraints" / file) for venv, file in closures}
    for words in installs:
        for name in (w for w in words[2:] if re.match(r"[a-zA-Z]", w)):
            assert "==" in name, f"{name} without an exact version"
            package, version = name.split("==")
            assert version == versions[words[0].split("/")[2]].get(normalised(package), version), name


def test_the_stages_of_the_gpu_image_run_where_torch_is(stages: dict[str, list[list[str]]]) -> None:
    (environment,) = [words[1:] for words in stages["gpu"] if words[0] == "ENV"]
    assert "ENVACE_PYTHON=/opt/training/bin/python" in environment and "PATH=/opt/envace/bin:$PATH" in environment


def test_each_image_has_the_python_that_its_versions_are_for(stages: dict[str, list[list[str]]]) -> None:
    for target, python in (("cpu", "python3.11"), ("gpu", "python3.12")):
        assert any(words[:4] == ["RUN", python, "-m", "venv"] for words in stages[target])
    assert ["ARG", "CPU_BASE=python:3.11-slim-bookworm"] in stages[""]


@pytest.mark.parametrize("target", INSTALLED)
def test_an_image_runs_envace_as_an_ordinary_user(stages: dict[str, list[list[str]]], target: str) -> None:
    assert [words for words in stages[target] if words[0] == "USER"] == [["USER", "envace"]]
    assert stages[target][-2:] == [["ENTRYPOINT", '["envace"]'], ["CMD", '["run"]']]
    after = stages[target][[w[0] for w in stages[target]].index("USER") :]
    assert {words[0] for words in after} == {"USER", "ENTRYPOINT", "CMD"}


def test_only_the_project_is_copied(stages: dict[str, list[list[str]]], project_root: Path) -> None:
    copied: set[str] = set()
    for words in (w for stage in stages.values() for w in stage if w[0] in ("COPY", "ADD")):
        assert words[0] == "COPY"
        if not any(w.startswith("--from=project") for w in words):
            copied |= set(words[1:-1])
    assert {c.split("/")[0] if c.startswith("constraints/") else c for c in copied} == ALLOWED
    assert all((project_root / name).exists() for name in copied)


def test_the_build_sees_nothing_else(project_root: Path) -> None:
    lines = (project_root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == ALLOWED
    assert not any(rule.startswith("!") for rule in rules[len(ALLOWED) + 1 :]), "nothing may be let in again"


def test_no_secret_is_built_in(stages: dict[str, list[list[str]]], project_root: Path) -> None:
    words = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
    for instruction in (w for stage in stages.values() for w in stage if w[0] in ("ARG", "ENV")):
        assert not words.search(" ".join(instruction)), instruction
    assert "--mount=type=secret" not in (project_root / "Dockerfile").read_text(encoding="utf-8")
