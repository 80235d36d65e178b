"""Checkpoints that can be trusted: sealed with their files' hashes once whole, resumed from only while they match."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from envace.files import canonical_json, read_json, sha256_file, sha256_text, write_json

SEAL = "sealed.json"
_STEP = re.compile(r"global_step_(\d+)")


def fingerprint(parts: dict[str, Any]) -> str:
    """The name of a run's checkpoint folder: changes with any of its params or inputs."""
    return sha256_text(canonical_json(parts))[:16]


def seal(folder: Path) -> None:
    """Record name, size and SHA-256 of every file below `folder`."""
    write_json(folder / SEAL, _files(folder))


def newest_sealed(folder: Path, say: Any = print) -> tuple[Path, int] | None:
    """The newest checkpoint whose files all match its seal, with its step. Says which ones it passes over and why."""
    for step, path in sorted(_checkpoints(folder).items(), reverse=True):
        fault = _fault(path)
        if fault is None:
            return path, step
        say(f"checkpoint of step {step} is not used: {fault}")
    return None


def discard_after(folder: Path, step: int) -> None:
    """Remove the checkpoints beyond the one a run resumes from (-1: all), so that no old seal vouches for new files."""
    for later, path in _checkpoints(folder).items():
        if later > step:
            shutil.rmtree(path)


def _checkpoints(folder: Path) -> dict[int, Path]:
    return {int(m.group(1)): p for p in folder.glob("global_step_*") if (m := _STEP.fullmatch(p.name))}


def _fault(folder: Path) -> str | None:
    if not (folder / SEAL).is_file():
        return "it was never finished"
    try:
        sealed = read_json(folder / SEAL)
    except (ValueError, OSError):
        return f"{SEAL} is unreadable"
    if not isinstance(sealed, dict) or not sealed:
        return f"{SEAL} is unreadable"
    found = _files(folder)
    for name in sorted(sealed.keys() | found.keys()):
        if sealed.get(name) != found.get(name):
            return f"{name} is {'missing' if name not in found else 'not as it was written'}"
    return None


def _files(folder: Path) -> dict[str, str]:
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SEAL)
    return {p.relative_to(folder).as_posix(): sha256_file(p) for p in paths}
