"""Reading what an earlier stage has written: a missing or broken file is told with the stage that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.errors import DataError
from envace.files import read_json


def written_by(stage: str, path: Path) -> Path:
    """`path`, file or folder. Raises DataError where it is not there."""
    if not path.exists():
        raise DataError(f"{path}: not found; stage {stage} writes it")
    return path


def read_record(stage: str, path: Path) -> dict[str, Any]:
    """The JSON object in a file that `stage` writes. Raises DataError."""
    try:
        value = read_json(written_by(stage, path))
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); run `envace run --force {stage}`") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a {type(value).__name__}, no object; run `envace run --force {stage}`")
    return value
