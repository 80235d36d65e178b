"""What validation found, as a canonical record for later stages and as a page for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from envace.data.checks import CHECKS, Violation
from envace.data.checks.registry import SEVERITY_WORDS
from envace.data.expectations import Outcome
from envace.data.validation import Validation

MAX_LISTED = 200
"""Quarantined rows that the page lists one by one."""


def report_record(result: Validation, outcomes: list[Outcome]) -> dict[str, Any]:
    """Everything the report says, in a fixed order and without times or paths."""
    found = Counter((v.check_id, v.severity) for v in [*result.violations, *result.failures])
    flags = Counter(flag for _, _, flag in {(v.file, v.row_index, v.flag) for v in result.violations if v.flag})
    return {
        "passed": not result.failures and all(o.success for o in outcomes if o.severity == "critical"),
        "files": {name: _file_record(result, name) for name in result.files},
        "checks": [
            {"id": c.id, "field": c.field, "rule": c.rule, **{s: found[c.id, s] for s in c.severities}}
            for c in CHECKS.values()
        ],
        "flags": dict(sorted(flags.items())),
        "quarantined": quarantined_rows(result),
        "failures": [{"check": v.check_id, "file": v.file, "detail": v.detail} for v in result.failures],
        "expectations": [asdict(outcome) for outcome in outcomes],
    }


def quarantined_rows(result: Validation) -> list[dict[str, Any]]:
    """One record for each rejected row, with all its reasons."""
    rows: dict[tuple[str, int], list[Violation]] = {}
    for violation in result.violations:
        if violation.severity == "R":
            rows.setdefault((violation.file, violation.row_index), []).append(violation)
    return [
        {
            "file": file,
            "row_index": index,
            "task_id": reasons[0].task_id,
            "reasons": [{"check": v.check_id, "pointer": v.pointer, "detail": v.detail} for v in reasons],
        }
        for (file, index), reasons in rows.items()
    ]


def _file_record(result: Validation, name: str) -> dict[str, int]:
    counts = result.files[name]
    flagged = {v.row_index for v in result.violations if v.file == name and v.flag}
    return {
        "rows": counts.rows,
        "kept": counts.kept,
        "flagged": len(flagged),
        "quarantined": counts.quarantined,
        "results": counts.results,
        "error_results": counts.error_results,
        "snippets": counts.evidence.snippets,
        "unlocated_snippets": counts.evidence.unlocated,
    }


def report_page(record: dict[str, Any]) -> str:
    """The same as a Markdown page."""
    verdict = "The data keeps the contract." if record["passed"] else "**The data breaks the contract.**"
    lines = ["# Validation", "", verdict, *([""] if record["failures"] else [])]
    for failure in record["failures"]:
        lines.append(f"- {failure['file']}: {_cell(failure['detail'])} (check {failure['check']})")
    lines += _table("Files", ("file", "rows", "kept", "of these flagged", "quarantined"), _file_rows(record))
    lines += _table("Flags", ("flag", "kept rows"), list(record["flags"].items()), "No row is flagged.")
    lines += _table(
        "Quarantined rows",
        ("file", "row", "task", "check", "place", "why"),
        _quarantine_rows(record),
        "No row is quarantined.",
    )
    left_out = len(record["quarantined"]) - MAX_LISTED
    if left_out > 0:
        lines += ["", f"{left_out} more rows are in `quarantine.jsonl`."]
    lines += _table("Checks", ("check", "looks at", "rule", *SEVERITY_WORDS.values()), _check_rows(record))
    lines += [
        "",
        "Counts are findings, not rows. Warnings are counted on kept rows only; – means that the check has",
        "no such severity.",
    ]
    lines += _table(
        "Expectations on kept rows", ("table", "column", "expectation", "severity", "holds"), _expectation_rows(record)
    )
    return "\n".join(lines) + "\n"


def _file_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(n, f["rows"], f["kept"], f["flagged"], f["quarantined"]) for n, f in record["files"].items()]


def _quarantine_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (row["file"], row["row_index"], row["task_id"][:8], reason["check"], reason["pointer"], reason["detail"])
        for row in record["quarantined"][:MAX_LISTED]
        for reason in row["reasons"]
    ]


def _check_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (check["id"], check["field"], check["rule"], *(check.get(severity, "–") for severity in SEVERITY_WORDS))
        for check in record["checks"]
    ]


def _expectation_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            o["suite"],
            o["about"],
            o["expectation"].removeprefix("expect_").replace("_", " "),
            o["severity"],
            "yes" if o["success"] else f"no, {o['unexpected']} values",
        )
        for o in record["expectations"]
    ]


def _table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]], if_empty: str = "None.") -> list[str]:
    lines = ["", f"## {title}", ""]
    if not rows:
        return [*lines, if_empty]
    body = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return [*lines, "| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *body]


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
