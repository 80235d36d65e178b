"""The report's pictures as PNG bytes. How they look is in `drawing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envace.report.curves import Curves, Point
from envace.report.drawing import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    by_step,
    figure,
    legend_beside,
    png,
)
from envace.report.headline import Row
from envace.report.health import Health
from envace.report.tables import POLICIES

_POLICY_COLOURS = {"base": GREY, "trained": BLUE, "clean": GREEN, "control": ORANGE}
_REFERENCES = {  # colours other than those of the two validation curves
    "clean": (PURPLE, "ceiling: clean references (held-out)"),
    "control": (ORANGE, "control: more supervised steps (held-out)"),
}
_VERDICT_COLOURS = {"pass": GREEN, "fail": RED, "unknown": GREY}
TIME_PARTS = {"generation": BLUE, "judging": PURPLE, "update": ORANGE, "sync": GREEN, "checkpoint": SKY}
TIME_PARTS |= {"waiting": GREY}
_PANELS = {
    "reward": "reward",
    "success": "success",
    "fidelity_exact": "rehearsed exactly",
    "error_recall": "error recall",
}


def learning_curve(curves: Curves, rows: Sequence[Row] = ()) -> bytes:
    """Left: reward of the training rollouts and of each role's outputs. Right: the validations. Standard errors.

    Beside the validations, where `rows` have them, the held-out rewards of ceiling and control with the tools run by
    code, as horizontal lines.
    """
    drawn, (train, validation) = figure(columns=2, height=4.3, sharey=True)
    steps = [p.step for p in curves.reward]
    low, high = [p.mean - p.error for p in curves.reward], [p.mean + p.error for p in curves.reward]
    train.fill_between(steps, low, high, color=BLUE, alpha=0.15, linewidth=0)
    train.plot(steps, [p.mean for p in curves.reward], color=BLUE, label="all rollouts")
    for role, colour, dashes in (("act", SKY, "--"), ("rehearse", ORANGE, ":")):
        points = curves.reward_by_role[role]
        means = [p.mean for p in points]
        train.plot([p.step for p in points], means, dashes, color=colour, label=f"{role} outputs")
    train.set_title("training, in the rehearsed world")
    by_step(train, "mean reward")
    _with_bars(validation, curves.validation_reward, BLUE, "o", "reward")
    _with_bars(validation, curves.validation_success, GREEN, "s", "success")
    for policy, level in reference_levels(rows).items():
        colour, label = _REFERENCES[policy]
        validation.axhline(level, color=colour, linestyle="--", linewidth=1.4, label=label)
    validation.set_title("validation, tools run by code")
    by_step(validation, "")
    for axes, columns in ((train, 3), (validation, 2)):
        if axes.get_legend_handles_labels()[1]:
            place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17)}
            axes.legend(ncols=columns, columnspacing=1.0, handlelength=1.8, fontsize=9, **place)
    return png(drawn)


def reference_levels(rows: Sequence[Row]) -> dict[str, float]:
    """The rewards of those of ceiling and control that were evaluated."""
    return {row.policy: row.reward for row in rows if row.policy in _REFERENCES and row.reward is not None}


def stop_reasons(curves: Curves) -> bytes:
    """Share of each stop reason by training step, stacked."""
    reasons = sorted({r for shares in curves.stop_reasons.values() for r in shares}, key=_completed_first)
    parts = {r.replace("_", " "): [s.get(r, 0.0) for s in curves.stop_reasons.values()] for r in reasons}
    return _stacked(list(curves.stop_reasons), parts, dict(zip(parts, CYCLE * 2, strict=False)), "share of rollouts")


def verdicts(health: Health) -> bytes:
    """Shares of the judge's verdicts by training step, stacked."""
    parts = {name: [s[name] for s in health.verdicts.values()] for name in _VERDICT_COLOURS}
    return _stacked(list(health.verdicts), parts, _VERDICT_COLOURS, "share of verdicts")


def time_split(timings: Mapping[str, Any]) -> bytes:
    """Seconds of each training step by what they went into, stacked (envace.training.timings says what is what)."""
    parts = {part: [split[part] for split in timings["steps"]] for part in TIME_PARTS}
    return _stacked([split["step"] for split in timings["steps"]], parts, TIME_PARTS, "seconds", top=None)


def outputs_by_role(curves: Curves) -> bytes:
    """Mean outputs a rollout of both roles, by training step."""
    drawn, axes = figure(height=3.0)
    for role, colour in (("act", BLUE), ("rehearse", ORANGE)):
        axes.plot(list(curves.outputs), [means[role] for means in curves.outputs.values()], color=colour, label=role)
    by_step(axes, "outputs a rollout", top=None)
    legend_beside(axes)
    return png(drawn)


def rehearsals(health: Health) -> bytes:
    """Shares of malformed and of error results among the rehearsed ones, by training step."""
    drawn, axes = figure(height=3.0)
    for shares, colour, label in ((health.malformed, RED, "no JSON"), (health.errors, PURPLE, "an error")):
        axes.plot(list(shares), list(shares.values()), color=colour, label=label)
    by_step(axes, "share of rehearsed results", top=None)
    legend_beside(axes)
    return png(drawn)


def before_and_after(rows: Sequence[Row]) -> bytes:
    """Held-out reward and success of every policy with standard errors, and how true its rehearsals are."""
    drawn, panels = figure(columns=len(_PANELS), height=1.1 + 0.42 * len(rows), sharey=True)
    colours = [_POLICY_COLOURS[r.policy] for r in rows]
    for axes, (kind, title) in zip(panels, _PANELS.items(), strict=True):
        means = [getattr(r, kind) for r in rows]
        errors = [getattr(r, f"{kind}_se", None) or 0.0 for r in rows]
        axes.barh(range(len(rows)), [m or 0.0 for m in means], color=colours, height=0.62)
        for place, (mean, error) in enumerate(zip(means, errors, strict=True)):
            if mean is not None and error:
                axes.errorbar(mean, place, xerr=error, color=INK, capsize=3, linewidth=1.2)
            text = "–" if mean is None else f"{mean:.2f}"
            axes.text((mean or 0.0) + error + 0.04, place, text, va="center", fontsize=9.5)
        axes.set(title=title, xlim=(0, 1.25), xticks=(0, 0.5, 1), yticks=range(len(rows)))
        axes.set_yticklabels([POLICIES[r.policy] for r in rows])
        axes.grid(axis="y", visible=False)
    panels[0].invert_yaxis()  # shared by all
    return png(drawn)


def _stacked(
    steps: list[int], parts: Mapping[str, list[float]], colours: Mapping[str, str], ylabel: str, top: float | None = 1
) -> bytes:
    drawn, axes = figure(height=3.3)
    floor = [0.0] * len(steps)
    for name, values in parts.items():
        axes.bar(steps, values, bottom=floor, color=colours[name], width=0.8, label=name)
        floor = [a + b for a, b in zip(floor, values, strict=True)]
    by_step(axes, ylabel, top)
    legend_beside(axes)
    return png(drawn)


def _with_bars(axes: Any, points: Sequence[Point], colour: str, marker: str, label: str) -> None:
    if points:
        steps, means, errors = zip(*((p.step, p.mean, p.error) for p in points), strict=True)
        axes.errorbar(steps, means, yerr=errors, color=colour, marker=marker, capsize=3, linestyle=":", label=label)


def _completed_first(reason: str) -> tuple[bool, str]:
    return reason != "completed", reason
