"""The quarantine: every rejected row as it was read, with its place and all reasons, one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from envace.data.checks import Findings, Violation
from envace.data.reader import RawRow

MAX_QUOTED_TEXT = 2000
"""Characters of an unreadable row that the quarantine quotes; the raw file still has it whole."""
MAX_LISTED = 200
"""Rejected rows that are kept at hand for a report."""


class QuarantineWriter:
    """Writes quarantine.jsonl. `first` has the first rejected rows without their content."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self.first: list[dict[str, Any]] = []

    def add(self, raw: RawRow, violations: list[Violation], findings: Findings) -> None:
        """Append a rejected row."""
        reasons = [{"check": v.check_id, "pointer": v.pointer, "detail": v.detail} for v in violations]
        head = {"file": findings.file, "row_index": findings.row_index, "place": raw.place, "task_id": findings.task_id}
        record = {**head, "reasons": reasons}
        if len(self.first) < MAX_LISTED:
            self.first.append(record)
        content = {"row_text": raw.text[:MAX_QUOTED_TEXT]} if raw.value is None else {"row": raw.value}
        # escapes instead of raw characters: a rejected row may hold text that UTF-8 cannot
        self._file.write(json.dumps({**record, **content}) + "\n")

    def __enter__(self) -> QuarantineWriter:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()
