"""The flow `evaluate`: one registered version on the held-out tasks, its figures recorded with the version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run as this_run

from envace.config import Params, load_params
from envace.files import read_json, write_json
from envace.freshness import source_changed
from envace.tracking.flow_run import FlowRun, flow_run
from envace.tracking.runs import PARENT
from envace.tracking.version_evaluation import VersionToEvaluate, record_evaluation, version_to_evaluate
from flows import progress
from flows.benchmark_subset import NAME, is_wanted, score_subset
from flows.benchmark_whole import require_benchmark, score_whole
from flows.group import run_step
from flows.run_process import alone
from flows.stage_task import stage_by_stage
from flows.workspace import EVALUATION, open_workspace
from pipeline_steps.evaluate_version import ENVIRONMENT, METRICS, REQUEST

FOLDER = Path(".envace/evaluations")

_subset_task = task(task_run_name=NAME, cache_policy=NO_CACHE, persist_result=False)(score_subset)
_whole_task = task(task_run_name="run {name} whole", cache_policy=NO_CACHE, persist_result=False)(score_whole)


@task(task_run_name="score {version.name}/{version.version}", cache_policy=NO_CACHE, persist_result=False)
def score(version: VersionToEvaluate, folder: str, out: str) -> None:
    """Play the held-out tasks of the project in `folder` with the version's checkpoint."""
    logger = get_run_logger()

    def log(text: str) -> None:
        logger.info(text)
        progress.line(text)

    write_json(Path(out) / REQUEST, {"checkpoint": str(version.checkpoint)})
    run_step("evaluate_version", Path(folder), log, {ENVIRONMENT: out})


def bring_tasks_up_to_date(params: Params, folder: Path, record: FlowRun) -> None:
    """The stages up to the one that makes the tasks."""
    outside = {"fetch_data": lambda: source_changed(params, folder)}
    for _ in stage_by_stage(outside, [], params, folder, last="prepare_data", record=record):
        pass


@flow(name="evaluate", persist_result=False)
def evaluate(
    version: str = "champion", model: str | None = None, in_place: bool = False, benchmark: str | None = None
) -> dict[str, Any]:
    """Evaluate a version and record the figures with it. Returns them by split.

    Args:
        version: a number or an alias
        model: name of the registered model; that of params.yaml if left out
        in_place: take the tasks of the project's folder itself, without git
        benchmark: a public benchmark to run whole on the version too, like bfcl, if its harness is installed
    """
    root = Path.cwd()
    if benchmark is not None:
        require_benchmark(benchmark, root)
    log = get_run_logger().info
    with alone("retrain", "this project's pipeline", log):
        folder = root if in_place else open_workspace(root, EVALUATION).folder
        params = load_params(folder / "params.yaml")
        found = version_to_evaluate(model or params.register_model.model_name, version, root)
        progress.say(f"evaluating {found.name} version {found.version}")
        out = root / FOLDER / f"{found.name}-{found.version}"
        tags = {"prefect_run": str(this_run.id)}
        with flow_run(f"evaluate {found.name}/{found.version}", params, folder, tags, progress.say) as record:
            bring_tasks_up_to_date(params, folder, record)
            with record.stage("evaluate_version") as recorded:
                score(found, str(folder), str(out))
                recorded.outcome = "ran"
            parent = {PARENT: recorded.run_id} if recorded.run_id else {}
            record_evaluation(params, found, out / METRICS, folder, root, tags | parent)
        if benchmark is not None:
            _whole_task(benchmark, found.checkpoint, root, f"{found.name}/{found.version}")
        elif is_wanted(found.checkpoint, root):
            _subset_task(found.checkpoint, root, f"{found.name}/{found.version}")
        figures: dict[str, Any] = read_json(out / METRICS)["policies"]["trained"]
        rows = [
            {"split": split, "tools": tools, **{k: by[tools][k] for k in ("reward", "success")}}
            for split, by in figures.items()
            for tools in ("true", "rehearsed")
            if by[tools]
        ]
        about = f"{found.name} version {found.version}"
        create_table_artifact(table=rows, key="evaluation", description=about)
        words = [
            f"- {r['split']}, tools {r['tools']}: reward {r['reward']:.3f}, success {r['success']:.3f}" for r in rows
        ]
        create_markdown_artifact(markdown="\n".join([f"**{about}**", "", *words]), key="evaluated", description=about)
        return {"model": found.name, "version": found.version, "rows": rows}
