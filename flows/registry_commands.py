"""`envace evaluate` and `envace promote`: what is done with a version that is registered already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Version = Annotated[str, typer.Argument(help="A version's number or alias, or NAME/VERSION.")]


def evaluate(
    version: Version = "champion",
    benchmark: Annotated[str | None, typer.Option(help="Run this public benchmark whole on it too, e.g. bfcl.")] = None,
) -> None:
    """Evaluate a registered version on the held-out tasks of params.yaml; the figures are recorded with it."""
    from flows.foreground import prepared
    from flows.progress import say

    def load():  # type: ignore[no-untyped-def]
        from flows.evaluate import evaluate

        return evaluate

    if benchmark is not None:
        from flows.benchmark_whole import require_benchmark

        require_benchmark(benchmark, Path.cwd())  # told before a server for the flow is started
    model, number = _parts(version)
    done = prepared(load)(number, model, in_place=True, benchmark=benchmark)
    say("")
    for row in done["rows"]:
        tools = "tools run by code" if row["tools"] == "true" else "rehearsed"
        say(f"{row['split']}, {tools}: reward {row['reward']:.3f}, success {row['success']:.3f}")
    say(f"recorded with {done['model']} version {done['version']}")


def promote(version: Version = "challenger") -> None:
    """Make a registered version champion, if the gate lets it.

    Exit code 1 where it does not, 2 where the version is not known.
    """
    from flows.data_commands import told_errors
    from flows.foreground import prepared
    from flows.progress import say

    def load():  # type: ignore[no-untyped-def]
        from flows.promote import promote

        return promote

    model, number = _parts(version)
    with told_errors():
        reason = prepared(load)(number, model)
    say(f"refused: {reason}" if reason else f"{version} is champion")
    raise typer.Exit(1 if reason else 0)


def _parts(version: str) -> tuple[str | None, str]:
    model, slash, number = version.rpartition("/")
    return (model if slash else None), number
