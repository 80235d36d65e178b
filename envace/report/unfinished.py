"""The rollouts of a training that has not ended, or was killed: the records that it leaves step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDS = ".envace/checkpoints/*/records"
_WHOLE, _ROLLOUTS = ".metrics.json", ".rollouts.jsonl"


def newest_records(root: Path) -> Path | None:
    """The folder of records, of all unfinished trainings of the project, in which a step was recorded last."""
    newest: tuple[float, Path] | None = None
    for whole in root.glob(f"{RECORDS}/*{_WHOLE}"):
        try:
            found = (whole.stat().st_mtime, whole.parent)
        except FileNotFoundError:  # the training has just ended
            continue
        newest = max(newest, found) if newest else found
    return newest[1] if newest else None


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All rollouts of the steps that are recorded whole, as `envace.rollout.records.read_rollouts` gives them.

    Raises OSError or ValueError where that is not what the folder holds, or no longer.
    """
    rows = []
    for whole in sorted(folder.glob(f"*{_WHOLE}")):
        text = whole.with_name(whole.name.removesuffix(_WHOLE) + _ROLLOUTS).read_text(encoding="utf-8")
        rows.extend(json.loads(line) for line in text.splitlines())
    for row in rows:
        row["turns"] = json.loads(row["turns"])
    return rows


def told(folder: Path, rows: list[dict[str, Any]]) -> str:
    """One line that says where these rollouts are from."""
    last = max((row["step"] for row in rows), default=0)
    return f"of a training that is unfinished, up to step {last}: the records in {folder}"
