"""`envace deploy`, `envace worker`, `envace watch`: runs that start by themselves."""

from __future__ import annotations

from typing import Annotated

import typer


def deploy() -> None:
    """Register the deployments of prefect.yaml with the Prefect server that `make ui` starts."""
    from flows.deployments import deploy
    from flows.progress import say

    for name in deploy():
        say(f"deployed {name}")
    say("`envace worker` runs what is due; a run now: `envace start nightly`, or the page's Run button")


def worker() -> None:
    """Run what the deployments make due, one at a time, until Ctrl-C."""
    from flows.worker import work

    work()


def start(
    deployment: Annotated[str, typer.Argument(help="Its name in prefect.yaml, for example nightly.")] = "nightly",
) -> None:
    """Ask for a run of a deployment now. A worker that is up takes it."""
    from flows.deployments import start
    from flows.progress import say

    say(start(deployment))


def watch() -> None:
    """Look once whether the raw file of params.yaml has changed, and announce it if so (`envace worker` does too)."""
    from pathlib import Path

    from flows.deployments import require_deployed
    from flows.new_data import announce
    from flows.progress import say

    require_deployed(Path())  # an event that no deployment waits for would be lost
    content = announce()
    say(f"new data {content[:16]} announced" if content else "no new data")
