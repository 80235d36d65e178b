"""The console script `envace`. Answers `--help` at once: everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from envace import __version__
from envace.errors import ConfigError, EnvaceError
from flows.benchmark_command import benchmark_app
from flows.data_commands import data_app
from flows.deployment_commands import deploy, start, watch, worker
from flows.doctor_command import doctor
from flows.drift_commands import accept, drift
from flows.experiment_command import experiment
from flows.in_project import in_project
from flows.lineage_command import lineage
from flows.profile_commands import profile_app
from flows.registry_commands import evaluate, promote
from flows.reproduce_command import reproduce
from flows.rollout_command import rollout_app
from flows.run_command import run
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
app.add_typer(profile_app, name="profile")
app.add_typer(benchmark_app, name="benchmark")
app.command()(run)
app.command()(in_project(evaluate))
app.command()(in_project(promote))
app.command()(in_project(lineage))
app.command()(in_project(reproduce))
app.command()(in_project(deploy))
app.command()(in_project(worker))
app.command()(in_project(start))
app.command()(in_project(watch))
app.command()(serve)
app.command()(doctor)
app.command()(experiment)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
@in_project
def status() -> None:
    """Say which stages are out of date and why (dvc status)."""
    from flows.dvc import status

    raise typer.Exit(status())


@app.command()
@in_project
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
    except ModuleNotFoundError as error:
        from envace.missing import missing_package

        told = missing_package(error)
        if told is None:
            raise
        print(f"envace: {told}", file=sys.stderr)
        sys.exit(1)
