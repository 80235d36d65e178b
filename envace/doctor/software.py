"""The installation: Python, the pinned versions, and whether verl knows this project's parts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from envace.doctor.finding import Finding, ok, problem, warning

PINS = Path("constraints/cpu.txt")
GPU_PINS = Path("constraints/gpu-pipeline.txt")
"""Of the command's own environment where the stages have another one, as in the GPU image (Dockerfile)."""

_PYTHON = (3, 11)
_SEAMS = "from envace.training.plugins import check_registered; check_registered()"
_SEAMS_TIMEOUT_S = 300.0
_NAMED = 6  # versions told by name before a count takes their place


def software(root: Path) -> Iterator[Finding]:
    """Everything; the check of verl starts a Python of its own and takes some seconds."""
    yield python_finding(sys.version_info[:2])
    yield pins_finding(root / pins_of(os.environ.get("ENVACE_PYTHON", sys.executable)))
    yield seams_finding(os.environ.get("ENVACE_PYTHON", sys.executable))


def pins_of(python: str) -> Path:
    """The pins of this process's environment, given the Python of the stages."""
    # by folder: a venv's python, python3 and python3.11 are one, and links of two venvs lead to the same binary
    stages, here = (Path(shutil.which(each) or each).absolute().parent for each in (python, sys.executable))
    return PINS if stages == here else GPU_PINS


def python_finding(found: tuple[int, ...]) -> Finding:
    """The pins are those of one Python."""
    says = ".".join(map(str, found))
    if found < _PYTHON:
        return problem("python", says, "make the environment with Python 3.11: `make clean-env run`")
    if found != _PYTHON:
        return warning("python", says, f"{PINS} is for Python 3.11: other versions are not tested with it")
    return ok("python", says)


def pins_finding(path: Path, installed: Callable[[str], str | None] | None = None) -> Finding:
    """Installed versions against the pinned ones. `installed` gives a package's version, None where there is none."""
    find = installed or _installed
    if not path.is_file():
        return problem("pins", f"{path} is not there", "run from the project's root")
    pins = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;#]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    missing = [name for name, _ in pins if find(name) is None]
    other = [f"{name} {find(name)} (pinned {pin})" for name, pin in pins if (find(name) or pin).split("+")[0] != pin]
    if missing:
        return problem("pins", f"not installed: {_some(missing)}", "run `make clean-env`, then `make run`")
    if other:
        todo = "results may differ from those of the pinned versions; `make clean-env run` installs these"
        return warning("pins", f"other versions: {_some(other)}", todo)
    return ok("pins", f"all {len(pins)} packages are those of {path}")


def seams_finding(python: str) -> Finding:
    """Whether verl has our trainer, estimator and CPU backend registered, as it must when a training starts."""
    try:
        done = subprocess.run(
            [python, "-c", _SEAMS], capture_output=True, text=True, timeout=_SEAMS_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem("verl", f"{python} did not answer ({error})", "set ENVACE_PYTHON to the Python of the stages")
    if done.returncode:
        said = (done.stderr.strip() or "no reason given").splitlines()[-1]
        return problem("verl", said[:300], "run `make clean-env`, then `make run`: training cannot start")
    return ok("verl", "knows this project's trainers, estimator and backend")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
