"""Stage validate_data: keep, flag or quarantine every raw row, and refuse data that breaks the contract as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.data.checks import CHECKS
from envace.data.drift import ACCEPTED, Drift, compare, read_profile, warnings
from envace.data.expectations import run_expectations
from envace.data.fetching import SOURCE_FILE, raw_files
from envace.data.flat import FLAT_CRITERIA, FLAT_ROWS
from envace.data.validation import QUARANTINE, VIOLATIONS, Validation, validate_files
from envace.data.validation_page import report_page
from envace.data.validation_report import profile_record, report_record
from envace.errors import ContractError
from envace.files import atomic_path, read_json, write_json, write_text
from envace.stage import stage_main

RAW, VALIDATED, REPORT = Path("data/raw"), Path("data/validated"), Path("reports/validation")
REFUSED = Path(".envace/refused_data")


def run(params: Params) -> None:
    """Write data/validated and reports/validation. Where the contract is broken, only the report, and fail."""
    with atomic_path(VALIDATED) as part:
        files = raw_files(RAW)
        source = read_json(RAW / SOURCE_FILE)
        result = validate_files(files, params.validate_data, part, source)
        profile = profile_record(result, source)
        drifts = _drifts(profile, params)
        result.warnings += warnings(drifts or [])
        flat = {"rows": part / FLAT_ROWS, "criteria": part / FLAT_CRITERIA}
        has_rows = any(counts.kept for counts in result.files.values())
        outcomes = run_expectations(flat, params.validate_data) if has_rows else []
        record = report_record(result, source, outcomes, drifts)
        write_json(part / SOURCE_FILE, record["source"])
        write_json(REPORT / "profile.json", profile)
        write_json(REPORT / "validation.json", record)
        write_text(REPORT / "validation.md", report_page(record))
        _print(record, result)
        if not record["passed"]:
            _keep_for_looking(part)
            raise ContractError(_broken(record))
    print(f"  the whole report: {REPORT}/validation.md")


def _drifts(profile: dict[str, Any], params: Params) -> list[Drift] | None:
    if not ACCEPTED.is_file():
        return None
    return compare(profile, read_profile(ACCEPTED), params.validate_data.max_drift) or None


def _print(record: dict[str, Any], result: Validation) -> None:
    for name, file in record["files"].items():
        counts = f"{file['kept']} kept ({file['flagged']} of them flagged), {file['quarantined']} quarantined"
        print(f"{name}: {file['rows']} rows, {counts}")
    for flag, count in record["flags"].items():
        print(f"  flag {flag}: {count} rows")
    for check, rows in sorted(result.rejected_by.items()):
        print(f"  quarantined by check {check} ({CHECKS[check].field}): {rows} rows{_example(record, check)}")
    for warning in record["warnings"]:
        print(f"  warning: {warning['detail']} (check {warning['check']})")


def _example(record: dict[str, Any], check: int) -> str:
    for row in record["first_quarantined"]:
        for reason in row["reasons"]:
            if reason["check"] == check:
                return f", first {row['file']} row {row['row_index']}: {reason['detail']}"
    return ""


def _keep_for_looking(part: Path) -> None:
    """What was found in refused data is no output, but its owner needs it."""
    with atomic_path(REFUSED) as folder:
        folder.mkdir()
        for name in (QUARANTINE, VIOLATIONS):
            shutil.copyfile(part / name, folder / name)


def _broken(record: dict[str, Any]) -> str:
    lines = [f"{f['file'] or 'source'}: {f['detail']} (check {f['check']})" for f in record["failures"]]
    lines += [
        f"kept {o['suite']}: {o['expectation']} of {o['about']} does not hold for {o['unexpected']} values"
        for o in record["expectations"]
        if o["severity"] == "critical" and not o["success"]
    ]
    told = "\n".join(f"  - {line}" for line in lines)
    where = f"See {REPORT}/validation.md and {REFUSED}/{QUARANTINE} for the rows, mend the raw file, run again"
    return f"the data breaks the contract:\n{told}\n{where}"


if __name__ == "__main__":
    stage_main("validate_data", run)
