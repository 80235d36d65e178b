"""The pictures of an experiment as PNG bytes: learning curves, and the intervals as a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from envace.report.drawing import CYCLE, GREEN, GREY, INK, ORANGE, by_step, figure, png

_MARKS = {True: "o", False: "x"}


def learning_curves(record: Mapping[str, Any]) -> bytes:
    """Validation reward by step: a line an arm, the mean over seeds; a band from the least to the greatest seed.

    Ceiling and control are horizontal lines, their held-out reward with the tools run by code, meaned over seeds.
    """
    canvas, axes = figure(height=4.6)
    for (name, arm), colour in zip(record["arms"].items(), CYCLE * 3, strict=False):
        rewards = points(arm)
        steps, means = list(rewards), [fmean(v) for v in rewards.values()]
        axes.plot(steps, means, "o-", color=colour, markersize=4, label=_label(name, arm))
        low, high = [min(v) for v in rewards.values()], [max(v) for v in rewards.values()]
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    for role, colour, dashes, label in (
        ("ceiling", GREEN, "--", "ceiling: clean references (held-out)"),
        ("control", ORANGE, ":", "control: more supervised steps (held-out)"),
    ):
        level = reference_level(record, role)
        if level is not None:
            axes.axhline(level, color=colour, linestyle=dashes, label=label)
    by_step(axes, "validation reward, tools run by code")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return png(canvas)


def points(arm: Mapping[str, Any]) -> dict[int, list[float]]:
    """Step to the validation rewards of the seeds, at the steps that all seeds have."""
    curves = [{p["step"]: p["reward"] for p in seed["curve"]} for seed in arm["seeds"].values()]
    shared = sorted(set.intersection(*(set(c) for c in curves))) if curves else []
    return {step: [c[step] for c in curves] for step in shared}


def reference_level(record: Mapping[str, Any], role: str) -> float | None:
    """Mean held-out reward of `ceiling` or `control` over all seeds that have it; None where none has."""
    found = {
        seed: policies[role]["true"]["reward"]
        for arm in record["arms"].values()
        for seed, policies in ((s, r["policies"]) for s, r in arm["seeds"].items())
        if "true" in policies.get(role, {})
    }
    return fmean(found.values()) if found else None


def forest(record: Mapping[str, Any]) -> bytes:
    """Every paired interval: trained minus start by arm and seed, then the comparisons; filled where 0 is excluded."""
    rows = forest_rows(record)
    canvas, panels = figure(columns=2, height=1.4 + 0.24 * len(rows), sharex=True)
    for axes, environment, title in zip(panels, ("true", "rehearsed"), ("tools run by code", "rehearsed"), strict=True):
        for height, (_, change, colour) in enumerate(rows):
            found = change.get(environment)
            if found is None:
                continue
            interval = found["reward"]
            axes.plot([interval["low"], interval["high"]], [height, height], color=colour, linewidth=1.8)
            mark = _MARKS[interval["excludes_zero"]]
            axes.plot([interval["mean"]], [height], mark, color=colour, markersize=5)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set(title=f"difference of reward, {title}", yticks=range(len(rows)))
        axes.set_yticklabels([label for label, _, _ in rows], fontsize=8)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
    panels[1].tick_params(labelleft=False)
    return png(canvas)


def forest_rows(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], str]]:
    """Label, changes and colour of each row."""
    rows: list[tuple[str, Mapping[str, Any], str]] = []
    for (name, arm), colour in zip(record["arms"].items(), CYCLE * 3, strict=False):
        rows += _seed_rows(f"{name} − start", arm["seeds"], "change", colour)
        rows.append((f"{name} − start, all seeds", arm["all_seeds"], INK))
    controls = [
        (s, r["control_change"])
        for a in record["arms"].values()
        for s, r in a["seeds"].items()
        if "control_change" in r
    ]
    rows += [(f"control − start, seed {seed}", change, ORANGE) for seed, change in dict(controls).items()]
    for compared in record["comparisons"]:
        if compared["seeds"]:
            label = f"{compared['arm']} − {compared['against']}"
            rows += [(f"{label}, seed {s}", change, GREY) for s, change in compared["seeds"].items()]
            rows.append((f"{label}, all seeds", compared["all_seeds"], INK))
    return rows


def _seed_rows(
    label: str, seeds: Mapping[str, Any], part: str, colour: str
) -> Sequence[tuple[str, Mapping[str, Any], str]]:
    return [(f"{label}, seed {seed}", found[part], colour) for seed, found in seeds.items()]


def _label(name: str, arm: Mapping[str, Any]) -> str:
    seeds = len(arm["seeds"])
    return f"{name} ({seeds} seed{'s' if seeds != 1 else ''})"
