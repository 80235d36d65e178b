"""Checkpoints that can be trusted: sealed with their files' hashes once whole, resumed from only while they match."""

from __future__ import annotations

import re
import shutil
from collections.abc import Container
from pathlib import Path
from typing import Any

from envace.files import canonical_json, read_json, sha256_file, sha256_text, write_json

SEAL = "sealed.json"
_STEP = re.compile(r"global_step_(\d+)")


def fingerprint(parts: dict[str, Any]) -> str:
    """The name of a run's checkpoint folder: changes with any of its params or inputs."""
    return sha256_text(canonical_json(parts))[:16]


def seal(folder: Path) -> None:
    """Record name, size in bytes and SHA-256 of every file below `folder`."""
    sealed = {name: {"size": path.stat().st_size, "sha256": sha256_file(path)} for name, path in _files(folder).items()}
    write_json(folder / SEAL, sealed)


def newest_sealed(folder: Path, say: Any = print) -> tuple[Path, int] | None:
    """The newest checkpoint whose files all match its seal, with its step. Says which ones it passes over and why."""
    for step, path in sorted(_checkpoints(folder).items(), reverse=True):
        fault = fault_of(path)
        if fault is None:
            return path, step
        say(f"checkpoint of step {step} is not used: {fault}")
    return None


def sealed_checkpoints(folder: Path) -> dict[int, Path]:
    """Step and path of every checkpoint that was once whole. Whether it still is, `fault_of` tells."""
    return {step: path for step, path in sorted(_checkpoints(folder).items()) if (path / SEAL).is_file()}


def discard_after(folder: Path, step: int) -> None:
    """Remove the checkpoints beyond the one a run resumes from (-1: all), so that no old seal vouches for new files."""
    for later, path in _checkpoints(folder).items():
        if later > step:
            _remove(path)


def prune(folder: Path, keep: Container[int], newest: int) -> None:
    """Remove the checkpoints of all other steps before `newest`, with what a killed removal has left of one."""
    for step, path in _checkpoints(folder).items():
        if step < newest and step not in keep:
            _remove(path)


def fault_of(folder: Path) -> str | None:
    """What is wrong with a checkpoint, naming the file; None where all its files match its seal.

    Names and sizes are compared first, so that a file that is missing or cut short is found without reading any.
    """
    if not (folder / SEAL).is_file():
        return "it was never finished"
    try:
        sealed = read_json(folder / SEAL)
    except (ValueError, OSError):
        return f"{SEAL} is unreadable"
    if not isinstance(sealed, dict) or not sealed or not all(isinstance(v, dict) for v in sealed.values()):
        return f"{SEAL} is unreadable"
    found = _files(folder)
    for name in sorted(sealed.keys() | found.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in sealed:
            return f"{name} does not belong to it"
        size = found[name].stat().st_size
        if size != sealed[name].get("size"):
            return f"{name} is not as it was written ({size} bytes instead of {sealed[name].get('size')})"
    for name, path in found.items():
        if sha256_file(path) != sealed[name].get("sha256"):
            return f"{name} is not as it was written"
    return None


def _checkpoints(folder: Path) -> dict[int, Path]:
    return {int(m.group(1)): p for p in folder.glob("global_step_*") if (m := _STEP.fullmatch(p.name))}


def _files(folder: Path) -> dict[str, Path]:
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SEAL)
    return {p.relative_to(folder).as_posix(): p for p in paths}


def _remove(path: Path) -> None:
    """The seal goes first: what a kill leaves behind is no checkpoint any more."""
    (path / SEAL).unlink(missing_ok=True)
    shutil.rmtree(path)
