"""The validation report as a Markdown page: the verdict first, then what was kept, flagged and quarantined, and why."""

from __future__ import annotations

from typing import Any

from envace.data.checks import CHECKS
from envace.data.checks.registry import NO_GATING_FLAG, SEVERITY_WORDS
from envace.data.profile import QUANTILES

_FLAG_RULES = {check.flag: check for check in CHECKS.values() if check.flag}
_FLAG_RULES |= {NO_GATING_FLAG: CHECKS[31], "narrow_tools_envace": CHECKS[23]}


def report_page(record: dict[str, Any]) -> str:
    """A page from what `validation_report.report_record` gives."""
    lines = ["# Validation", "", _verdict(record), "", _origin(record["source"])]
    for title, findings in (("Why the run fails", record["failures"]), ("Warnings", record["warnings"])):
        if findings:
            lines += ["", f"## {title}", ""]
            lines += [f"- {_about(f)}{_cell(f['detail'])} (check {f['check']}). {_advice(f)}" for f in findings]
    lines += _table("Files", ("file", "rows", "kept", "of these flagged", "quarantined"), _file_rows(record))
    lines += _table(
        "Flags", ("flag", "kept rows", "check", "rule that is not kept"), _flag_rows(record), "No row is flagged."
    )
    lines += _quarantine(record)
    lines += _profile(record)
    lines += _drift(record["drift"])
    lines += _table("All checks", ("check", "looks at", "rule", *SEVERITY_WORDS.values()), _check_rows(record))
    lines += [
        "",
        "Counts are findings, not rows. Warnings are counted on kept rows only; – means that the check has",
        "no such severity. Checks of splits (35, 36) are made by prepare_data, which fails where they find something.",
    ]
    lines += _table(
        "Expectations on kept rows", ("table", "column", "expectation", "severity", "holds"), _expectation_rows(record)
    )
    lines += ["", "Great Expectations' own pages: `.envace/great_expectations/gx/uncommitted/data_docs/local_site`."]
    return "\n".join(lines) + "\n"


def _verdict(record: dict[str, Any]) -> str:
    rows = sum(file["rows"] for file in record["files"].values())
    kept = sum(file["kept"] for file in record["files"].values())
    flagged = sum(file["flagged"] for file in record["files"].values())
    counts = f"Of {rows} rows {kept} are kept ({flagged} of them with flags) and {record['quarantined']} quarantined."
    verdict = "The data keeps the contract." if record["passed"] else "**The data breaks the contract.**"
    return f"{verdict} {counts}"


def _origin(source: dict[str, Any]) -> str:
    parts = [f"Source: {source.get('origin', 'not recorded')}", f"licence: {source.get('licence', 'not stated')}"]
    if source.get("revision"):
        parts.append(f"revision {source['revision']}")
    return "; ".join(parts) + "."


def _about(finding: dict[str, Any]) -> str:
    return f"{finding['file']}: " if finding["file"] else ""


def _advice(finding: dict[str, Any]) -> str:
    return CHECKS[finding["check"]].advice


def _file_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(n, f["rows"], f["kept"], f["flagged"], f["quarantined"]) for n, f in record["files"].items()]


def _flag_rows(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(flag, count, _FLAG_RULES[flag].id, _FLAG_RULES[flag].rule) for flag, count in record["flags"].items()]


def _quarantine(record: dict[str, Any]) -> list[str]:
    rows = [
        (row["file"], row["row_index"], row["task_id"][:8], reason["check"], reason["pointer"], reason["detail"])
        for row in record["first_quarantined"]
        for reason in row["reasons"]
    ]
    head = ("file", "row", "task", "check", "place", "why")
    lines = _table("Quarantined rows", head, rows, "No row is quarantined.")
    left_out = record["quarantined"] - len(record["first_quarantined"])
    if left_out > 0:
        lines += ["", f"{left_out} more rows are in `data/validated/quarantine.jsonl`."]
    return lines


def _profile(record: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, profile in record["profile"].items():
        columns = ("mean", "min", *QUANTILES, "max")
        figures = {key: value for key, value in profile.items() if key not in ("rows", "focus_mix")}
        rows = [(key.replace("_", " "), *(value[column] for column in columns)) for key, value in figures.items()]
        lines += _table(f"Profile of {name}", ("of a kept row", *columns), rows)
        mix = ", ".join(f"{focus} {share:.1%}" for focus, share in profile["focus_mix"].items() if share)
        lines += ["", f"Items look at: {mix or 'nothing'}. Tokens are estimates from bytes."]
    return lines


def _drift(drifts: list[dict[str, Any]] | None) -> list[str]:
    if not drifts:
        return ["", "## Drift", "", "No version of this data set was accepted before (`envace data accept`)."]
    rows = [
        (
            d["figure"],
            f"{d['accepted']:g}",
            f"{d['now']:g}",
            f"{d['change']:+.1%}",
            "beyond" if d["is_beyond"] else "within",
        )
        for d in drifts
    ]
    return _table(
        "Drift from the accepted version", ("of the training file", "accepted", "now", "change", "bound"), rows
    )


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
