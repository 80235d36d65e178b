"""`envace data accept` and `envace data drift`: which version of the data to compare with, and how far off it is."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.data_commands import told_errors


def accept() -> None:
    """Make the data that was validated last the accepted version: later versions are compared with it."""
    with told_errors():
        from envace.data.drift import ACCEPTED, accept

        profile = accept()
    rows = profile["files"]["train"]["rows"]
    print(f"{ACCEPTED}: {profile['dataset']}, {rows} training rows; commit this file to keep it")


def drift(
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 where a figure is beyond its bound.")
    ] = False,
) -> None:
    """Compare the data that was validated last with the accepted version."""
    with told_errors():
        from envace.config import load_params
        from envace.data.drift import ACCEPTED, PROFILE, compare, read_profile

        profile, accepted = read_profile(PROFILE), read_profile(ACCEPTED)
        bound = load_params().validate_data.max_drift
        drifts = compare(profile, accepted, bound)
    if not drifts:
        print(f"{profile['dataset']} has no accepted version ({ACCEPTED} is of {accepted['dataset']})")
        raise typer.Exit
    for one in drifts:
        mark = "BEYOND" if one.is_beyond else "within"
        print(f"{mark}  {one.figure}: {one.now:g}, was {one.accepted:g} ({one.change:+.1%}, bound {bound:.0%})")
    raise typer.Exit(int(exit_code and any(one.is_beyond for one in drifts)))
