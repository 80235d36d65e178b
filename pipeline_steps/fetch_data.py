"""Stage fetch_data: bring the raw files into data/raw, from the bundled sample or from the user's own files."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.data.fetching import fetch
from envace.files import atomic_path
from envace.stage import stage_main

RAW = Path("data/raw")


def run(params: Params) -> None:
    """Write data/raw: one raw file a split, and source.json."""
    with atomic_path(RAW) as part:
        record = fetch(params.fetch_data, part)
    print(f"raw data: {record['origin']}, licence: {record['licence']}")
    for name, file in record["files"].items():
        print(f"  {name}: {file['rows']} rows, {file['bytes']} bytes")


if __name__ == "__main__":
    stage_main("fetch_data", run)
