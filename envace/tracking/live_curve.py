"""The curve of a training while it runs, and of one that failed: from the records that it leaves step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.files import read_json
from envace.tracking.run_content import log_curve

if TYPE_CHECKING:
    from mlflow import MlflowClient

RECORDS = ".envace/checkpoints/[!.]*/records/*.metrics.json"
"""One whole file a step and phase (envace.training.recorder); a training that ends well takes them away."""


@dataclass(slots=True)
class LiveCurve:
    """What has been logged of the training that began at `since_ms` in the project `root`."""

    root: Path
    since_ms: int
    _logged: set[tuple[str, int]] = field(default_factory=set)

    def log_new(self, client: MlflowClient, run_id: str) -> None:
        """Log the steps that were recorded since the last call."""
        found = []
        for path in self.root.glob(RECORDS):
            try:
                if path.stat().st_mtime * 1000 >= self.since_ms:
                    found.append(read_json(path))
            except FileNotFoundError:  # the training has just ended well
                continue
        self.log_rest(client, run_id, found)

    def log_rest(self, client: MlflowClient, run_id: str, rows: list[dict[str, Any]]) -> None:
        """Log those of the rows, in order of their steps, that were not logged yet."""
        new = [row for row in rows if _key(row) not in self._logged]
        if new:
            log_curve(client, run_id, sorted(new, key=lambda row: row["step"]))
            self._logged |= {_key(row) for row in new}


def _key(row: dict[str, Any]) -> tuple[str, int]:
    return str(row.get("phase")), row["step"]
