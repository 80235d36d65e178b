"""Check 38: how far a data set's profile is from the one that was accepted last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.data.checks import RUN_ROW, Findings, Violation
from envace.errors import DataError
from envace.files import read_json, write_json

ACCEPTED = Path("accepted_profile.json")
PROFILE = Path("reports/validation/profile.json")
COMPARED_MEANS = ("turns", "tools", "items")
MIN_SHARE_CHANGE = 0.02
"""A share of the mix may always change by so much: of a share near nothing, 25 % is a handful of items."""


@dataclass(frozen=True)
class Drift:
    """One figure of the training file then and now. `change` is relative to the accepted figure."""

    figure: str
    accepted: float
    now: float
    change: float
    is_beyond: bool


def compare(profile: dict[str, Any], accepted: dict[str, Any], bound: float) -> list[Drift]:
    """All compared figures. Empty where the profiles are of different data sets: those have nothing to drift from."""
    if profile["dataset"] != accepted["dataset"] or not accepted["files"]["train"]["rows"]:
        return []
    old, new = accepted["files"]["train"], profile["files"]["train"]
    if not new["rows"]:
        return []
    means = [_drift(f"mean {name}", old[name]["mean"], new[name]["mean"], bound, 0.0) for name in COMPARED_MEANS]
    mixes = [
        _drift(f"share of items about {focus}", share, new["focus_mix"].get(focus, 0.0), bound, MIN_SHARE_CHANGE)
        for focus, share in old["focus_mix"].items()
        if share or new["focus_mix"].get(focus)
    ]
    return means + mixes


def _drift(figure: str, accepted: float, now: float, bound: float, slack: float) -> Drift:
    change = (now - accepted) / accepted if accepted else (1.0 if now else 0.0)
    is_beyond = abs(now - accepted) > max(bound * abs(accepted), slack) + 1e-9
    return Drift(figure, accepted, now, round(change, 4), is_beyond)


def warnings(drifts: list[Drift]) -> list[Violation]:
    """38, one finding for each figure beyond its bound."""
    findings = Findings("train", RUN_ROW)
    for drift in drifts:
        if drift.is_beyond:
            detail = f"{drift.figure}: {drift.now:g}, was {drift.accepted:g} ({drift.change:+.0%})"
            findings.add(38, "W", "", detail)
    return findings.settled()


def read_profile(path: Path) -> dict[str, Any]:
    """A profile file. Raises DataError where it is missing or is none."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; run the stage validate_data first, then `envace data accept`")
    try:
        profile = read_json(path)
        _ = profile["dataset"], profile["files"]["train"]["rows"], profile["files"]["train"]["focus_mix"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a profile of a data set ({error!r}); run `envace data accept` again") from None
    return profile


def accept() -> dict[str, Any]:
    """Make the current profile the accepted one, and give it."""
    profile = read_profile(PROFILE)
    write_json(ACCEPTED, profile)
    return profile
