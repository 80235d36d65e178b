"""The flow `retrain`: every stage in order, one Prefect task each. DVC alone decides what has to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run as this_run
from prefect.states import Completed

from envace.config import load_params
from envace.errors import ConfigError
from envace.freshness import checkpoint_changed, source_changed, source_sha256
from envace.report.headline import headline, markdown
from envace.tracking.flow_run import flow_run
from flows.benchmark_subset import NAME, is_wanted, score_subset
from flows.dvc import STAGES, StageOutcome
from flows.progress import say
from flows.run_process import alone, run_name
from flows.stage_task import stage_by_stage
from flows.workspace import Workspace, check_name, ended, open_workspace, remove_old
from pipeline_steps.register_model import is_registered

_subset_task = task(task_run_name=NAME, cache_policy=NO_CACHE, persist_result=False)(score_subset)


@flow(name="retrain", persist_result=False)
def retrain(
    force: list[str] | None = None,
    name: str | None = None,
    profile: str | None = None,
    values: dict[str, Any] | None = None,
    data_sha256: str | None = None,
    in_place: bool = False,
) -> Any:
    """Bring all stages up to date; returns what DVC did with each of them.

    Works in a git worktree of its own and commits its parameters and dvc.lock on the branch runs/<name>.

    Args:
        force: stages to run although nothing changed
        name: of the run; left out, it is made from the time
        profile: a profile to merge over params.yaml
        values: parameters to set, like {"train_policy.steps": 5}
        data_sha256: new data that this run is for; where a run for it has ended, nothing is done
        in_place: work in the project's folder itself, without git
    """
    if unknown := [stage for stage in force or [] if stage not in STAGES]:
        raise ConfigError(f"force {unknown[0]}: no such stage; the stages are {', '.join(STAGES)}")
    root = Path.cwd()
    log = get_run_logger().info
    if data_sha256 is not None:
        name = f"data-{data_sha256[:16]}"
        if ended(root, name):
            return Completed(name="Skipped", message=f"the branch runs/{name} holds a run on this data already")
    with alone("retrain", "this project's pipeline", log):
        if in_place:
            _require_data(root, data_sha256)
            return _run_stages(root, force or [], "retrain")
        with _workspace(root, name or run_name(), profile, values) as place:
            _require_data(place.folder, data_sha256)
            return _run_stages(place.folder, force or [], place.name)


def _require_data(folder: Path, sha256: str | None) -> None:
    """Raises ConfigError where the parameters in `folder` name other data than those that the run is for."""
    if sha256 is not None and source_sha256(load_params(folder / "params.yaml"), folder) != sha256:
        raise ConfigError(
            f"params.yaml: its raw files are not the new data {sha256[:16]} that this run is for. Commit params.yaml "
            "with the fetch_data.* that name it (and the files, if they are in git). Where the files have changed "
            "again since, a run on what they are now follows"
        )


def _run_stages(folder: Path, force: list[str], name: str) -> list[StageOutcome]:
    params = load_params(folder / "params.yaml")
    # what DVC cannot see: files of the user outside its graph, and a model store that was wiped
    outside = {
        "fetch_data": lambda: source_changed(params, folder),
        "build_base_model": lambda: checkpoint_changed(params, folder),
        "register_model": lambda: not is_registered(params, folder),
    }
    outcomes: list[StageOutcome] = []
    tags = {"prefect_run": str(this_run.id)}
    try:
        with flow_run(name, params, folder, tags, say) as record:
            # one by one, so that those before a failure are published too
            for outcome in stage_by_stage(outside, force, params, folder, record=record):
                outcomes.append(outcome)
    finally:
        _publish(outcomes, folder)
    # among the project's own results also where the run has a worktree, which will be removed one day
    if is_wanted(policy := folder / "models/policy", root := Path.cwd()):
        _subset_task(policy, root)
    return outcomes


@contextmanager
def _workspace(root: Path, name: str, profile: str | None, values: dict[str, Any] | None) -> Iterator[Workspace]:
    """The run's own worktree. What it made is committed when the block has ended well."""
    check_name(name)
    place = open_workspace(root, name, profile, values)
    say(f"run {name}: works in {place.folder.relative_to(root)}, kept on branch {place.branch}")
    yield place
    place.keep()
    remove_old(root)
    back = f"rm -f dvc.lock && git checkout {place.branch} && dvc checkout"
    words = f"Run `{name}` is kept on the branch `{place.branch}`. To bring it back: `{back}`."
    create_markdown_artifact(markdown=words, key="branch", description="Where this run is kept")


def _publish(outcomes: list[StageOutcome], folder: Path) -> None:
    rows = [{"stage": o.stage, "outcome": o.outcome, "seconds": round(o.seconds, 1)} for o in outcomes]
    create_table_artifact(table=rows, key="stages", description="What DVC did with each stage")
    if any(o.stage == "evaluate_policy" for o in outcomes):  # else the figures in the folder are of an earlier run
        text = markdown(headline(folder))
        create_markdown_artifact(markdown=text, key="headline", description="Base against trained")
