"""The console script `envace`. Answers `--help` at once: everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from envace import __version__
from envace.errors import ConfigError, EnvaceError
from flows.data_commands import data_app
from flows.drift_commands import accept, drift
from flows.rollout_command import rollout_app
from flows.serve_command import serve

app = typer.Typer(
    help="EnvACE: trains LLM tool-use agents by world rehearsal and role-wise GRPO. Run it from the project's root.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
data_app.command()(accept)
data_app.command()(drift)
app.add_typer(rollout_app, name="rollout")
app.command()(serve)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def run(
    force: Annotated[list[str] | None, typer.Option(help="A stage to run even if nothing changed; repeatable.")] = None,
) -> None:
    """Bring every stage up to date: from raw data to a registered, evaluated policy and its report."""
    from flows.run import run_pipeline

    run_pipeline(force or [])


@app.command()
def status() -> None:
    """Say which stages are out of date and why (dvc status)."""
    from flows.dvc import status

    raise typer.Exit(status())


@app.command()
def ui() -> None:
    """Serve the pages of MLflow and Prefect on this machine until Ctrl-C."""
    from flows.ui import serve

    serve()


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 a stage failed, 2 wrong parameters or usage, 130 SIGINT, 143 SIGTERM."""
    from envace.processes import Terminated

    try:
        app()  # an interrupt leaves it as exit code 130
    except Terminated:
        sys.exit(143)
    except EnvaceError as error:
        print(f"envace: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
