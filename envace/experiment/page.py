"""The results of an experiment as Markdown: what was asked, what was found, in words that the figures allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envace.experiment.simulator import LABEL as SIMULATOR
from envace.experiment.tables import WHERE, change_table, comparison_table, number, policy_table, spread_table, table

Record = Mapping[str, Any]
CURVES, FOREST = "learning_curves.png", "intervals.png"


def page(record: Record, picture_prefix: str = "") -> str:
    """The whole text. `picture_prefix` stands before the pictures' names."""
    lines = [f"## {record['title']}", "", record["question"], ""]
    lines += [f"`envace experiment {record['plan']}`. {_how(record)}", ""]
    if not record["arms"]:
        return "\n".join([*lines, "Nothing of it is finished yet.", ""])
    lines += [*_arms(record), "", "### What was found", "", *findings(record), ""]
    lines += [f"![validation reward by training step]({picture_prefix}{CURVES})", ""]
    lines += ["### Trained minus start, with 95 % intervals", "", *change_table(record), ""]
    lines += ['Bold: 0 lies outside. "all": a task\'s mean over seeds; the interval is over tasks, given these seeds.']
    lines += [""]
    if compared := comparison_table(record):
        lines += ["### Arm against arm, trained policies", "", *compared, ""]
    lines += [f"![paired intervals]({picture_prefix}{FOREST})", "", "A dot: 0 lies outside; a cross: inside.", ""]
    lines += ["### Spread over seeds (mean ± standard deviation)", "", *spread_table(record), ""]
    lines += ["### Every policy, and how true its rehearsals are", "", *policy_table(record), ""]
    lines += [_notes(record), ""]
    return "\n".join(lines)


def findings(record: Record) -> list[str]:
    """One line for what each arm's intervals say, whichever way; the reader need not trust more than is there."""
    lines = []
    for name, arm in record["arms"].items():
        for environment, where in WHERE.items():
            changes = [s["change"][environment]["reward"] for s in arm["seeds"].values() if environment in s["change"]]
            if changes:
                lines.append(f"- **{name}**, reward with {_spoken(where)}: {_verdict(changes)}")
        lines.append(f"- **{name}**, rehearser: {_rehearser(arm)}")
        if losses := [(s, f["validation_loss"]) for s, f in arm["seeds"].items() if "validation_loss" in f]:
            lines.append(f"- **{name}**, clean start: {'; '.join(_losses(seed, found) for seed, found in losses)}")
    for compared in record["comparisons"]:
        for environment, where in WHERE.items():
            changes = [s[environment]["reward"] for s in compared["seeds"].values() if environment in s]
            if changes:
                what = f"**{compared['arm']} − {compared['against']}**, reward with {_spoken(where)}"
                lines.append(f"- {what}: {_verdict(changes)}")
    if any("control_change" in s for arm in record["arms"].values() for s in arm["seeds"].values()):
        lines.append(f"- **control** (supervised steps instead of training): {_control(record)}")
    return lines


def _spoken(where: str) -> str:
    return "the tools run by code" if where == WHERE["true"] else "tools rehearsed by the policy itself"


def _verdict(changes: list[Record]) -> str:
    above, below = (sum(c[end] * sign > 0 for c in changes) for end, sign in (("low", 1), ("high", -1)))
    means = sorted(c["mean"] for c in changes)
    span = f"{means[0]:+.3f}" if len(means) == 1 else f"{means[0]:+.3f} to {means[-1]:+.3f}"
    total = len(changes)
    if above == total or below == total:
        which = "the" if total == 1 else "each"
        return f"{span}; {which} interval lies {'above' if above else 'below'} 0 ({total} of {total} seeds)."
    if not above and not below:
        return f"{span}; no interval excludes 0 (0 of {total} seeds), so no difference is shown."
    rest = total - above - below
    return (
        f"{span}; the interval lies above 0 in {above}, below 0 in {below}, and includes 0 in {rest} of {total} seeds."
    )


def _rehearser(arm: Record) -> str:
    def pair(figure: str) -> str:
        values = [
            (s["policies"]["start"]["fidelity"][figure], s["policies"]["trained"]["fidelity"][figure])
            for s in arm["seeds"].values()
        ]
        return ", ".join(f"{number(before)} → {number(after)}" for before, after in values)

    return f"fidelity (exact) {pair('exact')}; error recall {pair('error_recall')} (start → trained, by seed)."


def _losses(seed: str, losses: Record) -> str:
    least = min(losses, key=lambda steps: (losses[steps], int(steps)))
    told = ", ".join(f"{steps} steps {loss:.4f}" for steps, loss in losses.items())
    return f"seed {seed} validation loss {told}: started from {least}"


def _control(record: Record) -> str:
    found = {
        seed: s["control_change"]["true"]["reward"]
        for arm in record["arms"].values()
        for seed, s in arm["seeds"].items()
        if "true" in s.get("control_change", {})
    }
    return _verdict(list(found.values())) if found else "not measured with the tools run by code."


def _how(record: Record) -> str:
    plan, interval = record["evaluation"], record["interval"]
    common = f" Common to all arms: {_changes(record['common'])}." if record["common"] else ""
    return (
        f"Evaluated on the first {plan['tasks']} {plan['split']} tasks × {plan['samples']} rollouts, start and trained "
        f"policy on the same tasks and seeds. Intervals: {interval['level']:.0%}, paired over tasks (a task's figure "
        f"is the mean of its rollouts), {interval['resamples']:,} bootstrap resamples.{common}"
    )


def _arms(record: Record) -> list[str]:
    rows = []
    for name, arm in record["arms"].items():
        start = {"base": "base (faulty demonstrations)", "clean": "clean references"}[arm["start"]]
        steps = sorted({str(s["training"].get("steps", "–")) for s in arm["seeds"].values()})
        said = _changes(arm["params"]) or "–"
        said += f"; {SIMULATOR}" if arm["simulator"] else ""
        rows.append([name, arm["label"], start, said, ", ".join(steps), ", ".join(arm["seeds"])])
    return table(["arm", "what it is", "starts from", "changes to params.yaml", "steps", "seeds"], rows)


def _changes(changes: Record) -> str:
    return ", ".join(f"`{key}: {value}`" for key, value in changes.items())


def _notes(record: Record) -> str:
    unscorable = [
        figures[e]["unscorable"]
        for arm in record["arms"].values()
        for s in arm["seeds"].values()
        for figures in s["policies"].values()
        for e in WHERE
        if e in figures
    ]
    plan = record["evaluation"]
    notes = [
        f"Each figure is over {plan['tasks'] * plan['samples']} rollouts; unscorable ones: {sum(unscorable)} in all."
    ]
    notes.append("Fidelity is measured greedily on the recorded transitions of the same tasks; few of them are errors.")
    if len(record["code"]) > 1:
        notes.append(f"The arms were made by {len(record['code'])} states of the code.")
    if record["unfinished"]:
        notes.append(f"Not finished, so not shown: {'; '.join(record['unfinished'])}.")
    return " ".join(notes)
