"""Which code and data of BFCL v4 is run: figures of anything else would be comparable to nothing, so it is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from envace.errors import BenchmarkError
from harnesses.pinned import require_pinned, sha256_files

PINS = {
    "2026.3.23": {
        "code": "ff28756394cccf22728cf9aee57dc81d6da7b3727628f2d129d1abef2a6a6904",
        "data": "a640fcba33c4bc12cd79d49a88b7987fd4090aa935fc6b7b8b11f396d714d12f",
    },
}
"""Version → SHA-256 over names and contents of bfcl-eval on PyPI."""
AGAIN = "make its venv anew: envace benchmark install bfcl --again"
_UNUSED = "unused_datasets"


def package() -> Path:
    """Where the harness is installed in this venv; it is not imported."""
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or found.origin is None:
        raise BenchmarkError(f"bfcl_eval is not installed in this venv; {AGAIN}")
    return Path(found.origin).parent


def digests(folder: Path) -> dict[str, str]:
    """Hex SHA-256 of the code (all Python files) and of the data (tasks, answers, tools) that is used."""
    data = [path for path in (folder / "data").rglob("*.json") if _UNUSED not in path.parts]
    return {"code": sha256_files(folder.rglob("*.py"), folder), "data": sha256_files(data, folder / "data")}


def check(version: str, folder: Path) -> dict[str, str]:
    """`digests`, if they are those of the version. Raises BenchmarkError otherwise."""
    if version not in PINS:
        raise BenchmarkError(f"BFCL v4 {version} is not known here; known are {', '.join(PINS)}")
    found = digests(folder)
    require_pinned(f"BFCL v4 {version}", folder, found, PINS[version], AGAIN)
    return found
