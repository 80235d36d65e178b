"""What validation found, as a canonical record that later stages may depend on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from envace.data.checks import CHECKS, Violation
from envace.data.drift import Drift
from envace.data.expectations import Outcome
from envace.data.validation import Validation


def report_record(
    result: Validation, source: dict[str, Any], outcomes: list[Outcome], drifts: list[Drift] | None
) -> dict[str, Any]:
    """Everything the report says, in a fixed order and without times or paths.

    `drifts` is None where there is no accepted version of this data set.
    """
    found = result.found.copy()
    found.update((v.check_id, v.severity) for v in [*result.failures, *result.warnings])
    return {
        "passed": not result.failures and all(o.success for o in outcomes if o.severity == "critical"),
        "source": {key: value for key, value in source.items() if key != "files"},
        "files": {name: _file_record(result, name) for name in result.files},
        "checks": [
            {"id": c.id, "field": c.field, "rule": c.rule, **{s: found[c.id, s] for s in c.severities}}
            for c in CHECKS.values()
        ],
        "flags": dict(sorted(result.flags.items())),
        "quarantined": sum(counts.quarantined for counts in result.files.values()),
        "rejected_by": {str(check): rows for check, rows in sorted(result.rejected_by.items())},
        "first_quarantined": result.quarantined,
        "failures": [_finding(v) for v in result.failures],
        "warnings": [_finding(v) for v in result.warnings],
        "expectations": [asdict(outcome) for outcome in outcomes],
        "profile": {name: profile.record() for name, profile in result.profiles.items()},
        "drift": None if drifts is None else [asdict(drift) for drift in drifts],
    }


def profile_record(result: Validation, source: dict[str, Any]) -> dict[str, Any]:
    """The profile of the kept rows, with the name of the data set that it is of."""
    return {
        "dataset": source.get("repository") or source.get("origin") or "unnamed",
        "files": {name: profile.record() for name, profile in result.profiles.items()},
    }


def _finding(violation: Violation) -> dict[str, Any]:
    return {"check": violation.check_id, "file": violation.file, "detail": violation.detail}


def _file_record(result: Validation, name: str) -> dict[str, int]:
    counts = result.files[name]
    return {
        "rows": counts.rows,
        "kept": counts.kept,
        "flagged": counts.flagged,
        "quarantined": counts.quarantined,
        "results": counts.results,
        "error_results": counts.error_results,
        "snippets": counts.evidence.snippets,
        "unlocated_snippets": counts.evidence.unlocated,
    }
