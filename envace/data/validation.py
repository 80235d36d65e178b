"""One pass over the raw files: every row is either kept, with flags, or quarantined, with reasons. None is lost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from envace.config import ValidateDataParams
from envace.data.aliases import normalise_row
from envace.data.checks import Bounds, Findings, Row, SeenRows, Violation, examine
from envace.data.checks.run_level import FileCounts, check_run
from envace.data.flat import FlatRecord, flat_criteria, flat_row
from envace.data.ids import safe_task_id
from envace.data.reader import RawRow, read_rows
from envace.data.schema_names import ROW_KEYS
from envace.files import compact_json

MAX_QUOTED_TEXT = 2000
"""Characters of an unreadable row that quarantine quotes; the raw file still has it whole."""


@dataclass
class Validation:
    """What a run over all files found. `failures` are the findings of severity F."""

    files: dict[str, FileCounts] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    failures: list[Violation] = field(default_factory=list)
    rows: list[FlatRecord] = field(default_factory=list)
    criteria: list[FlatRecord] = field(default_factory=list)


def validate_files(raw_files: dict[str, Path], params: ValidateDataParams, folder: Path) -> Validation:
    """Check the raw files (split name to path) and write `<split>.jsonl` and `quarantine.jsonl` into `folder`.

    Raises DataError where a file as a whole cannot be read. What breaks the contract is in `failures`, not raised.
    """
    run = _Run(params)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "quarantine.jsonl").open("w", encoding="utf-8") as quarantine:
        for name, path in raw_files.items():
            with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as kept:
                run.check_file(name, path, kept, quarantine)
    run.result.failures = check_run(run.result.files, params)
    return run.result


class _Run:
    def __init__(self, params: ValidateDataParams) -> None:
        self.bounds = Bounds(params.max_row_bytes, params.max_message_bytes)
        self.seen = SeenRows()
        self.result = Validation()

    def check_file(self, name: str, path: Path, kept: TextIO, quarantine: TextIO) -> None:
        counts = self.result.files[name] = FileCounts()
        for raw in read_rows(path, self.bounds.max_row_bytes):
            counts.rows += 1
            row = self._examined(name, raw, counts)
            violations = row.findings.settled()
            self.result.violations += violations
            if not row.findings.rejected:
                counts.kept += 1
                self._keep(row, counts, kept)
                continue
            counts.quarantined += 1
            reasons = [{"check": v.check_id, "pointer": v.pointer, "detail": v.detail} for v in violations]
            counts.without_reason += not reasons
            # escapes instead of raw characters: a rejected row may hold text that UTF-8 cannot
            quarantine.write(json.dumps(_quarantined(name, raw, row.findings.task_id, reasons)) + "\n")

    def _examined(self, name: str, raw: RawRow, counts: FileCounts) -> Row:
        findings = Findings(name, raw.index)
        text_bytes = len(raw.text.encode("utf-8", "surrogatepass"))
        if raw.value is None:
            findings.add(raw.fault_check, "R", "", f"{raw.place}: {raw.fault}")
            return Row({}, text_bytes, self.bounds, findings)
        record = normalise_row(raw.value)
        for column in record:
            if column not in ROW_KEYS:
                counts.unknown_columns.setdefault(column, raw.index)
        findings.task_id = safe_task_id(record.get("uuid"))
        row = Row(record, text_bytes, self.bounds, findings)
        examine(row, self.seen, counts.evidence)
        return row

    def _keep(self, row: Row, counts: FileCounts, kept: TextIO) -> None:
        kept.write(compact_json(row.record) + "\n")
        flat = flat_row(row)
        counts.results += flat["results"]
        counts.error_results += flat["error_results"]
        self.result.rows.append(flat)
        self.result.criteria += flat_criteria(row)


def _quarantined(name: str, raw: RawRow, task_id: str, reasons: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"file": name, "row_index": raw.index, "place": raw.place, "task_id": task_id, "reasons": reasons}
    if raw.value is not None:
        return {**head, "row": raw.value}
    return {**head, "row_text": raw.text[:MAX_QUOTED_TEXT]}
