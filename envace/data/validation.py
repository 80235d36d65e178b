"""One pass over the raw files: every row is either kept, with flags, or quarantined, with reasons. None is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envace.config import ValidateDataParams
from envace.data.checks import Row, SeenRows, Transitions, Violation
from envace.data.checks.run_level import FileCounts, check_run
from envace.data.checks.source import check_source
from envace.data.flat import FLAT_CRITERIA, FLAT_ROWS, criteria_schema, flat_criteria, flat_row, rows_schema
from envace.data.profile import FileProfile
from envace.data.quarantine import QuarantineWriter
from envace.data.reader import RawRow, read_rows
from envace.data.row_examination import examine_raw
from envace.data.schema_names import ROW_KEYS
from envace.data.table_writer import TableWriter
from envace.data.violation_table import ViolationWriter
from envace.progress import progress

VIOLATIONS, QUARANTINE = "violations.parquet", "quarantine.jsonl"
RawFiles = dict[str, list[Path]]
"""The raw files of each split, in order. Row indices go on from one file to the next."""


@dataclass
class Validation:
    """What a run over all files found. `failures` are its findings of severity F, `warnings` those of severity W.

    Findings on rows are counted by check and severity, rows by flag and by the check that rejected them; the violations
    table has them all.
    """

    files: dict[str, FileCounts] = field(default_factory=dict)
    profiles: dict[str, FileProfile] = field(default_factory=dict)
    found: Counter[tuple[int, str]] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    rejected_by: Counter[int] = field(default_factory=Counter)
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Violation] = field(default_factory=list)
    warnings: list[Violation] = field(default_factory=list)


def validate_files(raw_files: RawFiles, params: ValidateDataParams, folder: Path, source: dict[str, Any]) -> Validation:
    """Check the raw files and write `<split>.jsonl`, the quarantine, the violations and the flat tables into `folder`.

    `source` is the record that fetch_data wrote. Raises DataError where a file as a whole cannot be read. What breaks
    the contract is in `failures`, not raised. Memory: a few hundred bytes a row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (
        QuarantineWriter(folder / QUARANTINE) as quarantine,
        ViolationWriter(folder / VIOLATIONS) as violations,
        TableWriter(folder / FLAT_ROWS, rows_schema()) as rows,
        TableWriter(folder / FLAT_CRITERIA, criteria_schema()) as criteria,
    ):
        run = _Run(params, folder, quarantine, violations, rows, criteria)
        for split, paths in raw_files.items():
            run.check_split(split, paths)
        run.check_transitions()
    run.settle()
    found = [*check_source(source, raw_files, params), *check_run(run.result.files, params)]
    run.result.failures = [violation for violation in found if violation.severity == "F"]
    run.result.warnings = [violation for violation in found if violation.severity == "W"]
    return run.result


class _Run:
    def __init__(
        self,
        params: ValidateDataParams,
        folder: Path,
        quarantine: QuarantineWriter,
        violations: ViolationWriter,
        rows: TableWriter,
        criteria: TableWriter,
    ) -> None:
        self.params, self.folder = params, folder
        self.quarantine, self.violations, self.rows, self.criteria = quarantine, violations, rows, criteria
        self.seen, self.transitions = SeenRows(), Transitions()
        self.flagged: dict[str, set[int]] = {}
        self.result = Validation()

    def check_split(self, split: str, paths: list[Path]) -> None:
        counts = self.result.files[split] = FileCounts()
        profile = self.result.profiles[split] = FileProfile()
        self.flagged[split] = set()
        with (self.folder / f"{split}.jsonl").open("w", encoding="utf-8") as kept:
            for path in paths:
                first = counts.rows
                with progress(f"validating {path.name}") as on_bytes:
                    for raw in read_rows(path, self.params.max_row_bytes, on_bytes):
                        row = self._examined(split, first, raw, counts)
                        if row is not None:
                            kept.write(row.whole + "\n")
                            self._keep(row, counts, profile)

    def _examined(self, split: str, first: int, raw: RawRow, counts: FileCounts) -> Row | None:
        """The row where it is kept, None where it went to the quarantine."""
        counts.rows += 1
        row, evidence = examine_raw(split, first + raw.index, raw, self.params)
        counts.evidence.snippets += evidence.snippets
        counts.evidence.unlocated += evidence.unlocated
        for column in row.record:
            if column not in ROW_KEYS:
                counts.unknown_columns.setdefault(column, row.findings.row_index)
        if not row.findings.rejected:
            self.seen.check(row)
        found = row.findings.settled()
        self._record(found)
        if not row.findings.rejected:
            return row
        counts.quarantined += 1
        counts.without_reason += not found
        self.quarantine.add(raw, found, row.findings)
        return None

    def _record(self, found: list[Violation]) -> None:
        if not found:
            return
        self.violations.add(found)
        self.result.found.update((v.check_id, v.severity) for v in found)
        self.result.rejected_by.update({v.check_id for v in found if v.severity == "R"})
        flags = {v.flag for v in found if v.flag}
        self.result.flags.update(flags)
        if flags:
            self.flagged[found[0].file].add(found[0].row_index)

    def _keep(self, row: Row, counts: FileCounts, profile: FileProfile) -> None:
        counts.kept += 1
        flat = flat_row(row)
        counts.results += flat["results"]
        counts.error_results += flat["error_results"]
        self.rows.add(flat)
        for record in flat_criteria(row):
            self.criteria.add(record)
        profile.add(row, flat)
        self.transitions.add(row)

    def check_transitions(self) -> None:
        """19, which only the whole of the data can show. A row's findings come together."""
        of_row: list[Violation] = []
        for violation in self.transitions.conflicts():
            if of_row and (of_row[0].file, of_row[0].row_index) != (violation.file, violation.row_index):
                self._record(of_row)
                of_row = []
            of_row.append(violation)
        self._record(of_row)

    def settle(self) -> None:
        self.result.quarantined = self.quarantine.first
        for split, rows in self.flagged.items():
            self.result.files[split].flagged = len(rows)
