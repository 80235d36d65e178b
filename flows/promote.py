"""The flow `promote`: the gate decides whether a registered version becomes champion; a refusal says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from envace.config import Params, load_params
from envace.tracking.promotion import promote as decide
from flows.run_process import alone


@task(task_run_name="gate", cache_policy=NO_CACHE, persist_result=False)
def gate(params: Params, model: str, version: str, root: str) -> str | None:
    """Under the registry's lock: the floors, and the comparison with the present champion. Returns why it refused."""
    return decide(params, model, version, Path(root))


@flow(name="promote", persist_result=False)
def promote(version: str = "challenger", model: str | None = None) -> Any:
    """Make a version champion if the gate lets it. Returns why it did not, None if it is.

    The champion is moved by nothing else but a registration that passes the same gate.

    Args:
        version: a number or an alias
        model: name of the registered model; that of params.yaml if left out
    """
    root = Path.cwd()
    log = get_run_logger().info
    params = load_params(root / "params.yaml")
    name = model or params.register_model.model_name
    with alone("promote", "the promotion", log):
        reason = gate(params, name, version, str(root))
    words = f"{name}/{version} refused: {reason}" if reason else f"{name}/{version} is champion"
    log(words)
    create_markdown_artifact(markdown=words, key="gate", description="What the promotion gate said")
    return Completed(name="Refused" if reason else "Promoted", message=words, data=reason)
