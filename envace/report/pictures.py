"""The report's pictures as PNG bytes. The same figures give the same bytes: no dates, no version strings."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from envace.report.curves import Curves, Point
from envace.report.headline import POLICIES, Row

# Okabe and Ito's colours, which colour-blind readers can tell apart
BLUE, ORANGE, GREEN, RED, SKY, YELLOW, PURPLE, GREY = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00"),
    *("#56b4e9", "#f0e442", "#cc79a7", "#7f7f7f"),
)
_CYCLE = (BLUE, RED, ORANGE, PURPLE, SKY, YELLOW, GREEN, GREY)
_POLICY_COLOURS = {"base": GREY, "trained": BLUE, "clean": GREEN, "control": ORANGE}
TIME_PARTS = {"generation": BLUE, "judging": PURPLE, "update": ORANGE, "sync": GREEN, "checkpoint": SKY}
TIME_PARTS |= {"waiting": GREY}
_STYLE: Any = {"font.size": 11, "axes.grid": True, "grid.alpha": 0.25, "axes.axisbelow": True}
_STYLE |= {"axes.spines.top": False, "axes.spines.right": False}


def learning_curve(curves: Curves) -> bytes:
    """Reward by training step with its standard error, and the validations beside it."""
    figure, axes = _figure()
    steps = [p.step for p in curves.reward]
    low, high = [p.mean - p.error for p in curves.reward], [p.mean + p.error for p in curves.reward]
    axes.fill_between(steps, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(steps, [p.mean for p in curves.reward], color=BLUE, label="training rollouts: reward")
    for role, dashes in (("act", "--"), ("rehearse", ":")):
        points = curves.reward_by_role[role]
        axes.plot(
            [p.step for p in points], [p.mean for p in points], dashes, color=SKY, label=f"the same, {role} outputs"
        )
    _with_bars(axes, curves.validation_reward, RED, "o", "validation: reward")
    _with_bars(axes, curves.validation_success, GREEN, "s", "validation: success")
    axes.set(xlabel="training step", ylabel="mean over rollouts", ylim=(0, 1))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9)
    return _png(figure)


def stop_reasons(curves: Curves) -> bytes:
    """Share of each stop reason by training step, stacked."""
    figure, axes = _figure()
    steps = list(curves.stop_reasons)
    reasons = sorted({r for shares in curves.stop_reasons.values() for r in shares}, key=_completed_first)
    floor = [0.0] * len(steps)
    for reason, colour in zip(reasons, _CYCLE * 2, strict=False):
        shares = [curves.stop_reasons[s].get(reason, 0.0) for s in steps]
        axes.bar(steps, shares, bottom=floor, color=colour, width=0.85, label=reason.replace("_", " "))
        floor = [a + b for a, b in zip(floor, shares, strict=True)]
    axes.set(xlabel="training step", ylabel="share of rollouts", ylim=(0, 1))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9)
    return _png(figure)


def time_split(timings: Mapping[str, Any]) -> bytes:
    """Seconds of each training step by what they went into, stacked (envace.training.timings says what is what)."""
    figure, axes = _figure()
    steps = [split["step"] for split in timings["steps"]]
    floor = [0.0] * len(steps)
    for part, colour in TIME_PARTS.items():
        seconds = [split[part] for split in timings["steps"]]
        axes.bar(steps, seconds, bottom=floor, color=colour, width=0.85, label=part)
        floor = [a + b for a, b in zip(floor, seconds, strict=True)]
    axes.set(xlabel="training step", ylabel="seconds", ylim=(0, None))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=6, fontsize=9)
    return _png(figure)


def outputs_by_role(curves: Curves) -> bytes:
    """Mean outputs a rollout of both roles, by training step."""
    figure, axes = _figure()
    for role, colour in (("act", BLUE), ("rehearse", ORANGE)):
        axes.plot(list(curves.outputs), [means[role] for means in curves.outputs.values()], color=colour, label=role)
    axes.set(xlabel="training step", ylabel="outputs a rollout", ylim=(0, None))
    axes.legend(frameon=False)
    return _png(figure)


def before_and_after(rows: Sequence[Row]) -> bytes:
    """Held-out reward and success of every evaluated policy, with standard errors."""
    figure, panels = _figure(columns=2, height=1.2 + 0.5 * len(rows))
    names = [POLICIES[r.policy] for r in rows]
    colours = [_POLICY_COLOURS[r.policy] for r in rows]
    for axes, kind in zip(panels, ("reward", "success"), strict=True):
        means = [getattr(r, kind) or 0.0 for r in rows]
        errors = [getattr(r, f"{kind}_se") or 0.0 for r in rows]
        axes.barh(names, means, xerr=errors, color=colours, height=0.62, error_kw={"ecolor": "#333333", "capsize": 3})
        axes.set(title=kind, xlim=(0, 1))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
    panels[1].tick_params(labelleft=False)
    return _png(figure)


def _with_bars(axes: Any, points: Sequence[Point], colour: str, marker: str, label: str) -> None:
    if points:
        steps, means, errors = zip(*((p.step, p.mean, p.error) for p in points), strict=True)
        axes.errorbar(steps, means, yerr=errors, color=colour, marker=marker, capsize=3, linestyle=":", label=label)


def _completed_first(reason: str) -> tuple[bool, str]:
    return reason != "completed", reason


def _figure(columns: int = 1, height: float = 4.0) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcdefaults()  # a user's own settings would change the bytes
    pyplot.rcParams.update(_STYLE)
    return pyplot.subplots(1, columns, figsize=(7.2, height), layout="constrained")


def _png(figure: Any) -> bytes:
    from matplotlib import pyplot

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    pyplot.close(figure)
    return buffer.getvalue()
