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
    """Reward, success and rehearser of every policy of every arm and seed.

    Policies that arms share stand once; where arms have several of a kind, each says of which arm it is.
    """
    head = ["policy", "seed", "reward, code", "success, code", "reward, rehearsed", "success, rehearsed"]
    head += ["fidelity: exact", "error recall", "malformed"]
    kinds: dict[tuple[int, str, str], dict[tuple[str, ...], str]] = {}  # figures, and the first arm with them
    for name, arm in record["arms"].items():
        for seed, found in arm["seeds"].items():
            for role, figures in found["policies"].items():
                who = f"{name}: trained" if role == "trained" else ROLES[role]
                place = len(ROLES) if role == "trained" else list(ROLES).index(role)
                cells = (*_rewards(figures), *rehearser(figures))
                kinds.setdefault((place, seed, who), {}).setdefault(cells, name)
    rows = [
        [who if len(found) == 1 else f"{who} (of {name})", seed, *cells]
        for (_, seed, who), found in sorted(kinds.items(), key=lambda kind: (int(kind[0][1]), kind[0][0]))
        for cells, name in found.items()
    ]
    return table(head, rows)


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
    """Mean and standard deviation over seeds of every policy; of those that arms share, of the first arm."""
    head = ["policy", "seeds", *(f"{f}, {w}" for w in ("code", "rehearsed") for f in ("reward", "success"))]
    rows: dict[tuple[str, ...], str] = {}
    for name, arm in record["arms"].items():
        for role, environments in arm["spread"].items():
            who = f"{name}: trained" if role == "trained" else ROLES[role]
            cells = [_spread(environments.get(e, {}).get(f)) for e in WHERE for f in ("reward", "success")]
            rows.setdefault((who, str(len(arm["seeds"])), *cells), name if role != "trained" else "")
    return table(head, [[who + (f" (of {name})" if name else ""), *cells] for (who, *cells), name in rows.items()])


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
