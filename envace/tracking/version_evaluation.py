"""An evaluation of a registered version made later than its registration: recorded in a run of its own and tied to it.

The tags of the registration stay as they are, since they are part of the version's lineage. The newest later evaluation
is in the tags `evaluated_benchmark_sha256`, `evaluated_reward`, `evaluated_success` and `evaluated_run_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.files import read_json
from envace.tracking.benchmark import TASKS, benchmark_sha256
from envace.tracking.code_state import git_commit
from envace.tracking.dvc_content import content_md5
from envace.tracking.gate import heldout
from envace.tracking.policy_model import registered_checkpoint
from envace.tracking.promotion import find_version, registry_lock
from envace.tracking.provenance import params_sha256
from envace.tracking.run_content import log_figures, log_parameters
from envace.tracking.runs import tracked_run
from envace.tracking.store import experiment_id, open_store

_BENCHMARK = "evaluated_benchmark_sha256"


@dataclass(frozen=True, slots=True)
class VersionToEvaluate:
    """A version by its number, with the folder of its weights and tokenizer."""

    name: str
    version: str
    checkpoint: Path


def version_to_evaluate(name: str, version: str, root: Path = Path()) -> VersionToEvaluate:
    """Find a version by number or alias. Raises TrackingError where it is not there, or its weights are gone."""
    client = open_store(root)
    found = find_version(client, name, version)
    location = client.get_model_version_download_uri(name, found.version)
    return VersionToEvaluate(name, str(found.version), registered_checkpoint(location))


def record_evaluation(
    params: Params,
    version: VersionToEvaluate,
    metrics: Path,
    root: Path = Path(),
    state: Path = Path(),
    more: Mapping[str, str] | None = None,
) -> str:
    """Log the figures in `metrics` (as evaluate_version writes it), tied to the version. Returns the run's id.

    `root` holds the code and the tasks they were measured with, `state` the store. `more`: tags of the flow.
    """
    evaluation = read_json(metrics)
    digest = benchmark_sha256(params, root)
    client = open_store(state)
    experiment = experiment_id(client, params.register_model.experiment, state)
    tags = {"kind": "evaluation", "model_name": version.name, "model_version": version.version}
    tags |= {"benchmark_sha256": digest, "profile": params.profile, "params_sha256": params_sha256(params)}
    tags |= {"git_commit": commit} if (commit := git_commit(root)) else {}
    tags |= more or {}
    with registry_lock(state):
        found = find_version(client, version.name, version.version)
        with tracked_run(client, experiment, f"evaluate {version.name}/{version.version}", tags) as run_id:
            log_parameters(client, run_id, params.model_dump(mode="json"))
            tasks = (TASKS.as_posix(), content_md5(root / TASKS))
            figures = evaluation["policies"]
            model_id = found.tags.get("model_id")
            log_figures(client, run_id, figures, prefix="evaluation", model_id=model_id, dataset=tasks)
            client.log_artifact(run_id, str(metrics), "evaluation")
        # the gate takes a score only with its benchmark: without one, a kill in between leaves no wrong pair
        if _BENCHMARK in found.tags:
            client.delete_model_version_tag(version.name, version.version, _BENCHMARK)
        for key, value in {**_tags(evaluation, run_id), _BENCHMARK: digest}.items():
            client.set_model_version_tag(version.name, version.version, key, value)
    return run_id


def _tags(evaluation: Mapping[str, Any], run_id: str) -> dict[str, str]:
    tags = {"evaluated_run_id": run_id}
    for figure in ("reward", "success"):
        value = heldout(evaluation, "trained", figure)
        tags[f"evaluated_{figure}"] = "not measured" if value is None else repr(value)
    return tags
