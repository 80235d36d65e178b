"""Checks on a whole file or run, which no single row can show: 2, 17, 30 and 37. Each finding fails the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from envace.config import ValidateDataParams
from envace.data.checks.evidence import EvidenceCount
from envace.data.checks.violation import RUN_ROW, Findings, Violation


@dataclass
class FileCounts:
    """What happened to the rows of one file. `results` and `error_results` count those of kept rows."""

    rows: int = 0
    kept: int = 0
    flagged: int = 0
    quarantined: int = 0
    without_reason: int = 0
    results: int = 0
    error_results: int = 0
    unknown_columns: dict[str, int] = field(default_factory=dict)
    evidence: EvidenceCount = field(default_factory=EvidenceCount)


def check_run(files: dict[str, FileCounts], params: ValidateDataParams) -> list[Violation]:
    """All findings of severity F. Checks on shares apply to files with enough rows."""
    found: list[Violation] = []
    for name, counts in files.items():
        findings = Findings(name, RUN_ROW)
        _check_file(findings, counts, params)
        found += findings.settled()
    return found


def _check_file(findings: Findings, counts: FileCounts, params: ValidateDataParams) -> None:
    if not params.min_rows <= counts.rows <= params.max_rows:
        bounds = f"{params.min_rows} to {params.max_rows}"
        findings.add(2, "F", "", f"the file has {counts.rows or 'no'} rows, {bounds} are expected")
    for column, row in sorted(counts.unknown_columns.items()):
        findings.add(2, "F", f"/{column}", f"unknown column {column!r}, first in row {row}; remove or rename it")
    if counts.rows != counts.kept + counts.quarantined:
        detail = f"{counts.rows} rows in, {counts.kept} kept and {counts.quarantined} quarantined"
        findings.add(37, "F", "", detail)
    if counts.without_reason:
        findings.add(37, "F", "", f"{counts.without_reason} quarantined rows have no reason")
    if counts.rows and not counts.kept:
        findings.add(37, "F", "", f"all {counts.rows} rows were rejected")
    elif counts.rows >= params.min_rows_for_shares:
        _bound(findings, 37, "rejected rows", counts.quarantined, counts.rows, params.max_rejected_share)
        _bound(findings, 17, "recorded errors", counts.error_results, counts.results, params.max_error_result_share)
        evidence = counts.evidence
        _bound(findings, 30, "unlocated snippets", evidence.unlocated, evidence.snippets, params.max_unlocated_share)


def _bound(findings: Findings, check_id: int, what: str, part: int, whole: int, limit: float) -> None:
    if whole and part / whole > limit:
        detail = f"{part} of {whole} are {what} ({part / whole:.1%}), more than {limit:.1%}"
        findings.add(check_id, "F", "", detail)
