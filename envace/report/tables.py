"""The report's tables as rows of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envace.report.headline import with_error

POLICIES = {"base": "base", "trained": "trained", "clean": "ceiling", "control": "control"}
_ERROR_RECALL = "error recall"
_FIDELITY = {
    "parses": "is JSON",
    "exact": "equals the record",
    "key_f1": "F1 of keys",
    "leaf_f1": "F1 of values",
    "error_agreement": "error or not",
    "recorded_errors": "errors",
    "error_recall": _ERROR_RECALL,
}


@dataclass(frozen=True, slots=True)
class Table:
    """A head and rows of cells, the first cell of a row being its name."""

    head: list[str]
    rows: list[list[str]]


def before_after(evaluation: Mapping[str, Any]) -> dict[str, Table]:
    """For each split: every policy with true tools and in its own imagination."""
    head = ["", "reward", "success", "rollouts", "rehearsed reward", "rehearsed success"]
    head += ["malformed", "equals the record", _ERROR_RECALL]
    return {s: Table(head, [_scores(p, found) for p, found in _of_split(evaluation, s)]) for s in _splits(evaluation)}


def fidelity(evaluation: Mapping[str, Any]) -> dict[str, Table]:
    """For each split: how true the rehearsed results are to the recorded ones."""
    return {
        split: Table(
            ["", "results", *_FIDELITY.values()],
            [_fidelity_row(p, found.get("fidelity") or {}) for p, found in _of_split(evaluation, split)],
        )
        for split in _splits(evaluation)
    }


def by_group(results: Mapping[str, Any]) -> dict[str, Table]:
    """For each benchmark that was run with tools executed by code: reward by group of tasks, every policy beside."""
    found = [r for r in results["results"] if r["groups"] and (r["environment"], r["metric"]) == ("code", "reward")]
    tables = {}
    for benchmark in sorted({r["benchmark"] for r in found}, key=lambda name: (name != "heldout", name)):
        ours = [r for r in found if r["benchmark"] == benchmark]
        head = ["", "tasks", *(POLICIES.get(r["policy"], r["policy"]) for r in ours)]
        rows = []
        for group in ours[0]["groups"]:
            cells = [r["groups"].get(group) for r in ours]
            if any(cells):
                counted = max(cell["n"] for cell in cells if cell)
                rows.append([group, str(counted), *(_mean(cell) for cell in cells)])
        tables[benchmark] = Table(head, rows)
    return tables


def not_run(results: Mapping[str, Any]) -> list[str]:
    """The benchmarks of which nothing was measured, by name."""
    run = {r["benchmark"] for r in results["results"] if r["groups"]}
    return list(dict.fromkeys(r["benchmark"] for r in results["results"] if r["benchmark"] not in run))


def counts(name: str, stated: Any) -> Table:
    """One row for each mapping in `stated`, a column for every count that it states, `name` above their names."""
    mappings = {k: v for k, v in stated.items() if isinstance(v, Mapping)} if isinstance(stated, Mapping) else {}
    keys = dict.fromkeys(key for found in mappings.values() for key in found)
    columns = [k for k in keys if all(isinstance(v.get(k, 0), int | float) for v in mappings.values())]
    rows = [[each, *(number(found.get(k)) for k in columns)] for each, found in mappings.items()]
    return Table([name, *(c.replace("_", " ") for c in columns)], rows)


def quarantine(validation: Mapping[str, Any]) -> Table:
    """How many rows each check has sent to quarantine, with the rule that they broke."""
    rules = {str(c["id"]): f"{c['field']}: {c['rule']}" for c in validation.get("checks") or []}
    broken = validation.get("rejected_by") or {}
    return Table(["rule", "rows"], [[rules.get(check, f"check {check}"), str(rows)] for check, rows in broken.items()])


def number(value: Any) -> str:
    """A count as it is, a fraction with three digits, a dash for what is absent."""
    if value is None or isinstance(value, bool):
        return "–" if value is None else ("yes" if value else "no")
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _scores(policy: str, found: Mapping[str, Any]) -> list[str]:
    true, rehearsed, fidelity = (found.get(part) or {} for part in ("true", "rehearsed", "fidelity"))
    return [
        POLICIES.get(policy, policy),
        with_error(true.get("reward"), true.get("reward_se")),
        with_error(true.get("success"), true.get("success_se")),
        number(true.get("rollouts")),
        with_error(rehearsed.get("reward"), rehearsed.get("reward_se")),
        with_error(rehearsed.get("success"), rehearsed.get("success_se")),
        number(rehearsed.get("malformed_share")),
        number(fidelity.get("exact")),
        number(fidelity.get("error_recall")),
    ]


def _mean(cell: Mapping[str, Any] | None) -> str:
    return with_error(cell["mean"], cell["se"]) if cell else "–"


def _fidelity_row(policy: str, found: Mapping[str, Any]) -> list[str]:
    return [POLICIES.get(policy, policy), number(found.get("count")), *(number(found.get(k)) for k in _FIDELITY)]


def _splits(evaluation: Mapping[str, Any]) -> list[str]:
    names = {split for found in evaluation["policies"].values() for split in found}
    return sorted(names, key=lambda s: (s != "heldout", s))


def _of_split(evaluation: Mapping[str, Any], split: str) -> list[tuple[str, Mapping[str, Any]]]:
    policies = evaluation["policies"]
    ordered = [*(p for p in POLICIES if p in policies), *sorted(set(policies) - set(POLICIES))]
    return [(p, policies[p][split]) for p in ordered if policies[p].get(split)]
