"""Stage prepare_data: turn validated rows into tasks with splits, and the tables that all later stages read."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.data.preparation import write_prepared
from envace.files import atomic_path
from envace.stage import stage_main

VALIDATED, PREPARED = Path("data/validated"), Path("data/prepared")


def run(params: Params) -> None:
    """Write data/prepared: tasks, transitions, criteria, tools and splits as Parquet, and manifest.json."""
    with atomic_path(PREPARED) as part:
        manifest = write_prepared(VALIDATED, part, params.prepare_data)
    for split, counts in manifest["splits"].items():
        print(f"{split}: {counts['tasks']} tasks, {counts['turns']} turns, {counts['calls']} calls")
    for flag, count in manifest["flags"].items():
        print(f"  flag {flag}: {count} tasks")


if __name__ == "__main__":
    stage_main("prepare_data", run)
