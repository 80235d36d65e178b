"""Stage validate_data: keep, flag or quarantine every raw row, and refuse data that breaks the contract as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.config import Params
from envace.data.checks import CHECKS
from envace.data.expectations import run_expectations
from envace.data.fetching import raw_files
from envace.data.validation import validate_files
from envace.data.validation_report import report_page, report_record
from envace.data.violation_table import write_violations
from envace.errors import ContractError
from envace.files import atomic_path, write_json, write_text
from envace.stage import stage_main

RAW, VALIDATED, REPORT = Path("data/raw"), Path("data/validated"), Path("reports/validation")


def run(params: Params) -> None:
    """Write data/validated and reports/validation. Where the contract is broken, only the report, and fail."""
    with atomic_path(VALIDATED) as part:
        result = validate_files(raw_files(RAW), params.validate_data, part)
        outcomes = run_expectations(result.rows, result.criteria, params.validate_data) if result.rows else []
        write_violations(part / "violations.parquet", result.violations)
        record = report_record(result, outcomes)
        write_json(REPORT / "validation.json", record)
        write_text(REPORT / "validation.md", report_page(record))
        _print(record)
        if not record["passed"]:
            raise ContractError(_broken(record))
    print(f"  the whole report: {REPORT}/validation.md")


def _print(record: dict[str, Any]) -> None:
    for name, file in record["files"].items():
        counts = f"{file['kept']} kept ({file['flagged']} of them flagged), {file['quarantined']} quarantined"
        print(f"{name}: {file['rows']} rows, {counts}")
    for flag, count in record["flags"].items():
        print(f"  flag {flag}: {count} rows")
    by_check: dict[int, list[str]] = {}
    for row in record["quarantined"]:
        for reason in row["reasons"]:
            by_check.setdefault(reason["check"], []).append(f"{row['file']} row {row['row_index']}: {reason['detail']}")
    for check, told in sorted(by_check.items()):
        print(f"  quarantined by check {check} ({CHECKS[check].field}): {len(told)} findings, first {told[0]}")


def _broken(record: dict[str, Any]) -> str:
    lines = [f"{f['file']}: {f['detail']} (check {f['check']})" for f in record["failures"]]
    lines += [
        f"kept {o['suite']}: {o['expectation']} of {o['about']} does not hold for {o['unexpected']} values"
        for o in record["expectations"]
        if o["severity"] == "critical" and not o["success"]
    ]
    told = "\n".join(f"  - {line}" for line in lines)
    return (
        f"the data breaks the contract:\n{told}\nSee {REPORT}/validation.md for the rows, mend the raw file, run again"
    )


if __name__ == "__main__":
    stage_main("validate_data", run)
