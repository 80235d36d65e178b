"""The figures of an experiment as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ROLES = {
    "start": "start of training",
    "trained": "trained",
    "control": "control: more supervised steps",
    "ceiling": "ceiling: clean references",
}
WHERE = {"true": "tools run by code", "rehearsed": "rehearsed"}
Record = Mapping[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def policy_table(record: Record) -> list[str]:
    """Reward, success and rehearser of every policy of every arm and seed. Policies that arms share stand once."""
    head = ["policy", "seed", "reward, code", "success, code", "reward, rehearsed", "success, rehearsed"]
    head += ["fidelity: exact", "error recall", "malformed"]
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, arm in record["arms"].items():
        for seed, found in arm["seeds"].items():
            for role, figures in found["policies"].items():
                who = f"{name}: trained" if role == "trained" else ROLES[role]
                cells = [who, seed, *_rewards(figures), *rehearser(figures)]
                rows.setdefault(tuple(cells), cells)
    order = list(ROLES.values())
    last = len(order)
    return table(head, sorted(rows.values(), key=lambda r: (int(r[1]), order.index(r[0]) if r[0] in order else last)))


def rehearser(figures: Record) -> list[str]:
    """Exact share, error recall with its count, and malformed share of the rehearsals in the rollouts."""
    fidelity, rehearsed = figures["fidelity"], figures.get("rehearsed", {})
    recall, errors = fidelity["error_recall"], fidelity["recorded_errors"]
    told = "–" if recall is None else f"{recall:.2f} ({round(recall * errors)} of {errors})"
    return [number(fidelity["exact"]), told, number(rehearsed.get("malformed_share"))]


def change_table(record: Record) -> list[str]:
    """Paired intervals of trained minus start, for each arm and seed, and of the control minus start."""
    head = [
        "arm",
        "seed",
        *(f"{figure}, {where}" for where in ("code", "rehearsed") for figure in ("reward", "success")),
    ]
    rows = []
    for name, arm in record["arms"].items():
        rows += [[name, seed, *_intervals(found["change"])] for seed, found in arm["seeds"].items()]
        rows.append([name, "all", *_intervals(arm["all_seeds"])])
    return table(head, [*rows, *_control_rows(record)])


def _control_rows(record: Record) -> list[list[str]]:
    """The control's, once a seed: it is the same for all arms of one base."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for arm in record["arms"].values():
        for seed, found in arm["seeds"].items():
            if "control_change" in found:
                cells = ["control", seed, *_intervals(found["control_change"])]
                rows.setdefault(tuple(cells), cells)
    return list(rows.values())


def comparison_table(record: Record) -> list[str]:
    """Paired intervals between the trained policies of two arms."""
    head = ["difference", "seed", *(f"{f}, {w}" for w in ("code", "rehearsed") for f in ("reward", "success"))]
    rows = []
    for compared in record["comparisons"]:
        what = f"{compared['arm']} − {compared['against']}"
        rows += [[what, seed, *_intervals(changes)] for seed, changes in compared["seeds"].items()]
        if compared["seeds"]:
            rows.append([what, "all", *_intervals(compared["all_seeds"])])
    return table(head, rows) if rows else []


def spread_table(record: Record) -> list[str]:
    """Mean and standard deviation over seeds of every policy."""
    head = ["policy", "seeds", *(f"{f}, {w}" for w in ("code", "rehearsed") for f in ("reward", "success"))]
    rows = []
    for name, arm in record["arms"].items():
        for role, environments in arm["spread"].items():
            if role == "trained" or name == next(iter(record["arms"])):
                who = f"{name}: trained" if role == "trained" else f"{ROLES[role]} (of {name})"
                cells = [_spread(environments.get(e, {}).get(f)) for e in WHERE for f in ("reward", "success")]
                rows.append([who, str(len(arm["seeds"])), *cells])
    return table(head, rows)


def interval(found: Record | None) -> str:
    """`+0.123 [0.081, 0.165]`, bold where it excludes 0."""
    if found is None:
        return "–"
    text = f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"
    return f"**{text}**" if found["excludes_zero"] else text


def number(value: float | None) -> str:
    """Three decimals, or a dash for what was not measured."""
    return "–" if value is None else f"{value:.3f}"


def _rewards(figures: Record) -> list[str]:
    return [number(figures.get(e, {}).get(f)) for e in WHERE for f in ("reward", "success")]


def _intervals(changes: Record) -> list[str]:
    return [interval(changes.get(e, {}).get(f)) for e in WHERE for f in ("reward", "success")]


def _spread(found: Record | None) -> str:
    if found is None:
        return "–"
    return f"{found['mean']:.3f}" + (f" ± {found['sd']:.3f}" if found["sd"] is not None else "")
