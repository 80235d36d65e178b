"""The report's tables as rows of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envace.report.headline import with_error

POLICIES = {"base": "base", "trained": "trained", "clean": "ceiling", "control": "control"}
_FIDELITY = {
    "parses": "is JSON",
    "exact": "equals the record",
    "key_f1": "F1 of keys",
    "leaf_f1": "F1 of values",
    "error_agreement": "error or not",
    "error_recall": "error recall",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A head and rows of cells, the first cell of a row being its name."""

    head: list[str]
    rows: list[list[str]]


def before_after(evaluation: Mapping[str, Any]) -> dict[str, Table]:
    """For each split: every policy with true tools and in its own imagination."""
    head = ["", "reward", "success", "rollouts", "rehearsed reward", "rehearsed success", "malformed"]
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


def data_quality(validation: Mapping[str, Any]) -> Table:
    """For each raw file: every count that validation states about it."""
    files = {name: counts for name, counts in (validation.get("files") or {}).items() if isinstance(counts, Mapping)}
    columns = [k for k in dict.fromkeys(k for c in files.values() for k in c) if _counted(files, k)]
    rows = [[name, *(number(counts.get(k)) for k in columns)] for name, counts in files.items()]
    return Table(["file", *(c.replace("_", " ") for c in columns)], rows)


def splits(manifest: Mapping[str, Any]) -> Table:
    """Tasks of each split after preparation, where the manifest states them."""
    found = manifest.get("splits") or {}
    sizes = {name: value.get("tasks") if isinstance(value, Mapping) else value for name, value in found.items()}
    return Table(["split", "tasks"], [[name, number(size)] for name, size in sizes.items() if isinstance(size, int)])


def number(value: Any) -> str:
    """A count as it is, a fraction with three digits, a dash for what is absent."""
    if value is None or isinstance(value, bool):
        return "–" if value is None else ("yes" if value else "no")
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _scores(policy: str, found: Mapping[str, Any]) -> list[str]:
    true, rehearsed = found.get("true") or {}, found.get("rehearsed") or {}
    return [
        POLICIES.get(policy, policy),
        with_error(true.get("reward"), true.get("reward_se")),
        with_error(true.get("success"), true.get("success_se")),
        number(true.get("rollouts")),
        with_error(rehearsed.get("reward"), rehearsed.get("reward_se")),
        with_error(rehearsed.get("success"), rehearsed.get("success_se")),
        number(rehearsed.get("malformed_share")),
    ]


def _fidelity_row(policy: str, found: Mapping[str, Any]) -> list[str]:
    return [POLICIES.get(policy, policy), number(found.get("count")), *(number(found.get(k)) for k in _FIDELITY)]


def _splits(evaluation: Mapping[str, Any]) -> list[str]:
    names = {split for found in evaluation["policies"].values() for split in found}
    return sorted(names, key=lambda s: (s != "heldout", s))


def _of_split(evaluation: Mapping[str, Any], split: str) -> list[tuple[str, Mapping[str, Any]]]:
    policies = evaluation["policies"]
    ordered = [*(p for p in POLICIES if p in policies), *sorted(set(policies) - set(POLICIES))]
    return [(p, policies[p][split]) for p in ordered if policies[p].get(split)]


def _counted(files: Mapping[str, Mapping[str, Any]], key: str) -> bool:
    return all(isinstance(c.get(key, 0), int | float) for c in files.values())
