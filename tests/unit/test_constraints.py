"""constraints/cpu.txt is installed with --no-deps: it holds all that its packages ask for, on each Python 3.11."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet


@pytest.mark.parametrize("python", ["3.11.0", "3.11.2", "3.11.9", "3.11.15"])
def test_every_requirement_of_a_pinned_package_is_pinned(project_root: Path, python: str) -> None:
    pinned = pins(project_root)
    names = {normalised(p.name) for p in pinned}
    missing = {
        f"{p.name} needs {r}"
        for p in pinned
        for extra in ["", *p.extras]
        for r in requirements(p.name)
        if (r.marker is None or r.marker.evaluate(environment(python, extra))) and normalised(r.name) not in names
    }
    assert not missing


@pytest.mark.parametrize("python", ["3.11.0", "3.11.2", "3.11.15"])
def test_every_pinned_version_runs_on_each_python_3_11(project_root: Path, python: str) -> None:
    wanted = {p.name: metadata(p.name).get("Requires-Python") or "" for p in pins(project_root)}
    assert not {name: spec for name, spec in wanted.items() if python not in SpecifierSet(spec)}


def pins(project_root: Path) -> list[Requirement]:
    lines = (project_root / "constraints/cpu.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line.split("#")[0].strip()) for line in lines if line.split("#")[0].strip()]


def requirements(name: str) -> list[Requirement]:
    try:
        return [Requirement(r) for r in requires(name) or []]
    except PackageNotFoundError:
        pytest.fail(f"{name} is pinned but not installed")


def environment(python: str, extra: str) -> dict[str, str]:
    return {**default_environment(), "python_full_version": python, "extra": extra}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
