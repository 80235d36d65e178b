"""`envace benchmark`: the public benchmarks by their official harnesses: install, run, list, and print the tables."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_UNWIND_S = 45.0
benchmark_app = typer.Typer(help="Public benchmarks by their official harnesses.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A benchmark of `envace benchmark list`.")]


class AgentChoice(StrEnum):
    """Who acts."""

    plain = "plain"
    rehearsal = "rehearsal"
    oracle = "oracle"
    do_nothing = "do-nothing"


@benchmark_app.command()
def install(name: Name, again: Annotated[bool, typer.Option("--again", help="Make the venv anew.")] = False) -> None:
    """Make the harness's own venv from its pinned requirements (.envace/venvs/NAME); once, some minutes."""
    from envace.benchmarks.harness import find_benchmark
    from envace.benchmarks.install import install as make

    benchmark = find_benchmark(name)
    done = make(benchmark, _say, again=again)
    _say(f"{benchmark.title} is installed" if done else f"{benchmark.title} is installed already")


@benchmark_app.command("list")
def list_() -> None:
    """Say which benchmarks there are, whether their harness is installed, and which runs are finished."""
    from envace.benchmarks.collect import read_runs
    from envace.benchmarks.harness import benchmark_names, find_benchmark
    from envace.benchmarks.install import is_installed
    from envace.benchmarks.run import RUNS

    runs = read_runs(RUNS)
    for name in benchmark_names():
        benchmark = find_benchmark(name)
        state = "installed" if is_installed(benchmark) else f"not installed: envace benchmark install {name}"
        _say(f"{name}: {benchmark.title}, {benchmark.package} {benchmark.version}, {sum(benchmark.sizes.values())} "
             f"tasks ({state})")  # fmt: skip
        for category, need in benchmark.needs.items():
            _say(f"  {category} needs {need}")
        for run in runs:
            if run.metrics.benchmark == name:
                kind = "stopped" if run.metrics.aborted else "subset" if run.metrics.subset else "complete"
                _say(f"  {run.folder} ({run.who}, {kind})")


@benchmark_app.command()
def run(
    name: Name,
    agent: Annotated[AgentChoice, typer.Option(help="oracle and do-nothing need no policy.")] = AgentChoice.plain,
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible address of the policy, with /v1.")] = None,
    model: Annotated[str | None, typer.Option(help="Name that the endpoint knows the policy by.")] = None,
    key_env: Annotated[str | None, typer.Option(help="Name of the variable that holds the endpoint's key.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Serve this folder for the run, e.g. models/policy.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of the policy; the paper's is 0.6.")] = 0.6,
    top_p: Annotated[float, typer.Option(min=0, max=1, help="Of the policy; the paper's is 0.95.")] = 0.95,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest answer: 4096, or a quarter of a small --checkpoint's context.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Tasks side by side.")] = 4,
    timeout_s: Annotated[float, typer.Option(min=1, help="Seconds for one answer.")] = 120.0,
    rehearsal_mode: Annotated[str | None, typer.Option(help="parallel or sequential, to be recorded.")] = None,
    rehearsal_n: Annotated[int | None, typer.Option(min=1, help="Attempts, to be recorded.")] = None,
    rehearsal_model: Annotated[str | None, typer.Option(help="Who rehearses, to be recorded.")] = None,
    user_url: Annotated[str | None, typer.Option(help="Address of the model that plays the user.")] = None,
    user_model: Annotated[str | None, typer.Option(help="Its name.")] = None,
    user_key_env: Annotated[str | None, typer.Option(help="Name of the variable that holds its key.")] = None,
    judge_url: Annotated[str | None, typer.Option(help="Address of the model that judges, where one does.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Its name.")] = None,
    judge_key_env: Annotated[str | None, typer.Option(help="Name of the variable that holds its key.")] = None,
    checkout: Annotated[Path | None, typer.Option(help="Run these sources instead of the package.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Only this category; repeatable.")] = None,
    task: Annotated[list[str] | None, typer.Option("--id", help="Only this task: a subset; repeatable.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Independent runs; the paper has four.")] = 1,
    first_run: Annotated[int, typer.Option(min=0, help="Number of the first of them.")] = 0,
    trials: Annotated[int, typer.Option(min=1, help="How often the harness runs each task within a run.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the policy's sampling; the run's number is added.")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="A setting of this harness, key=value; repeatable.")] = None,
    label: Annotated[str | None, typer.Option(help="What the policy is called in tables.")] = None,
    version: Annotated[str | None, typer.Option(help="NAME/VERSION in the registry to record it with.")] = None,
    track: Annotated[bool, typer.Option(help="Record in MLflow and DVC.")] = True,
) -> None:
    """Run a benchmark. A run that was stopped goes on when the same command is given again."""
    from envace.benchmarks.harness import find_benchmark
    from envace.benchmarks.install import installed_python
    from envace.benchmarks.protocol import Spec
    from envace.errors import ConfigError
    from envace.files import sha256_tree
    from envace.processes import unwind_on_signals
    from flows.benchmark_request import DEFAULT_TOKENS, EndpointRequest, acting, answer_tokens, checkout_harness, specs
    from flows.benchmark_runs import registered, run_all
    from flows.benchmark_server import served

    benchmark = find_benchmark(name)
    installed_python(benchmark)  # before anything is started
    if checkpoint is not None and base_url is not None:
        raise ConfigError("give --checkpoint or --base-url, not both")
    actor = acting(agent.value, rehearsal_mode, rehearsal_n, rehearsal_model)
    tokens, others = answer_tokens(max_tokens, checkpoint, _say), max_tokens or DEFAULT_TOKENS
    user = EndpointRequest(user_url, user_model, user_key_env, 0.0, 1.0, others, concurrency, timeout_s)
    judge = EndpointRequest(judge_url, judge_model, judge_key_env, 0.0, 1.0, others, concurrency, timeout_s)
    known, weights = registered(version, look_up=track), sha256_tree(checkpoint) if checkpoint else None

    def wanted(address: str | None, known_as: str | None) -> list[Spec]:
        return specs(
            benchmark,
            actor,
            EndpointRequest(address, known_as, key_env, temperature, top_p, tokens, concurrency, timeout_s),
            user,
            judge=judge,
            harness=checkout_harness(benchmark, checkout) if checkout else None,
            categories=category or (),
            ids=task or (),
            runs=runs,
            first_run=first_run,
            trials=trials,
            seed=seed,
            options=option or (),
            checkpoint_sha256=weights,
            model_version=known,
        )

    wanted(*(("http://127.0.0.1/v1", "policy") if checkpoint else (base_url, model)))  # refused before it is served
    unwind_on_signals(_UNWIND_S)  # servers and drivers are ended on the way out
    serving = served(checkpoint, concurrency, _say) if checkpoint is not None else nullcontext((base_url, model))
    with serving as (address, known_as):
        complete = run_all(benchmark, wanted(address, known_as), label, _say, track=track)
    if not complete:
        raise typer.Exit(1)


@benchmark_app.command()
def table(
    number: Annotated[int, typer.Argument(help="Of the paper's tables: 1 or 3.")] = 1,
    html: Annotated[bool, typer.Option(help="Write Markdown, HTML and PNG to reports/benchmarks too.")] = True,
) -> None:
    """Print one of the paper's tables with our rows below, and what was not run in plain sight."""
    from envace.benchmarks.collect import lines, read_runs
    from envace.benchmarks.run import RUNS
    from envace.benchmarks.table_page import REPORTS, markdown, write_table
    from envace.benchmarks.tables import table as make

    found = read_runs(RUNS)
    whole = [run for run in found if run.fills_cells]
    made = make(number, lines(whole), [run for run in found if not run.fills_cells])
    _say(markdown(made))
    if html:
        _say("written: " + ", ".join(str(path) for path in write_table(f"table{number}", made, REPORTS)))


def _say(text: str) -> None:
    print(text, flush=True)
