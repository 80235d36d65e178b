"""Get-or-create of a registered model by the hash of its checkpoint, with what is known of it and of its origin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envace.config import Params
from envace.files import canonical_json
from envace.tracking.benchmark import TASKS
from envace.tracking.dvc_content import content_md5
from envace.tracking.dvc_lock import content_of
from envace.tracking.evidence import Evidence, read_evidence
from envace.tracking.gate import Floor, floors, heldout
from envace.tracking.policy_model import log_policy
from envace.tracking.promotion import CHALLENGER, decide, registry_lock
from envace.tracking.provenance import FOLDER, INPUTS, RECORD, Provenance, provenance
from envace.tracking.run_content import log_curve, log_figures, log_inputs, log_parameters
from envace.tracking.runs import tracked_run
from envace.tracking.secrets import scrub_of
from envace.tracking.store import artifacts_exist, experiment_id, open_store
from envace.tracking.traces import log_traces

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

_LINEAGE = "lineage_sha256"
DECISION = Path("reports/registration/registration.json")


@dataclass(frozen=True, slots=True)
class Registration:
    """The outcome. `recorded`: a run was written, as the model or what is known of it was new."""

    model_name: str
    version: str
    run_id: str
    aliases: list[str]
    refusal: str | None
    recorded: bool


def register(params: Params, root: Path = Path(), evidence: Evidence | None = None) -> Registration:
    """Register models/policy under `register_model.model_name` unless its very bytes are registered already.

    It becomes `challenger` in any case, and `champion` if the gate lets it: the last thing that happens, so that what
    fails before moves nothing. Raises DataError or TrackingError.
    """
    evidence = evidence or read_evidence(params, root)
    conditions = floors(evidence.evaluation, params.register_model)
    origin = provenance(params, root, DECISION)
    client = open_store(root)
    with registry_lock(root):
        found = _find(client, params.register_model.model_name, evidence.model_sha256)
        is_new = found is None or not _says_the_same(found, evidence, origin)
        if found is None or is_new:
            found = _record(client, evidence, origin, found, root)
        client.set_registered_model_alias(found.name, CHALLENGER, found.version)
        reason = decide(client, found, conditions)
        found = client.get_model_version(found.name, found.version)
    version, aliases = str(found.version), sorted(found.aliases)
    return Registration(found.name, version, found.tags["run_id"], aliases, reason, is_new)


def decision_of(params: Params, evidence: Evidence) -> dict[str, object]:
    """What the gate's floors make of a policy: follows from the files alone, not from what the registry holds."""
    conditions: list[Floor] = floors(evidence.evaluation, params.register_model)
    return {
        "model_name": params.register_model.model_name,
        "model_sha256": evidence.model_sha256,
        "data_sha256": evidence.data_sha256,
        "benchmark_sha256": evidence.benchmark_sha256,
        "floors": [
            {"figure": f.figure, "required": f.required, "gained": f.gained, "holds": f.holds} for f in conditions
        ],
        "floors_hold": all(f.holds for f in conditions),
    }


def _find(client: MlflowClient, name: str, model_sha256: str) -> ModelVersion | None:
    same = client.search_model_versions(f"name = '{name}' and tags.`model_sha256` = '{model_sha256}'")
    whole = [v for v in same if artifacts_exist(client.get_model_version_download_uri(name, v.version))]
    return max(whole, key=lambda v: int(v.version), default=None)


def _says_the_same(version: ModelVersion, evidence: Evidence, origin: Provenance) -> bool:
    told = version.tags.get("evaluation_sha256"), version.tags.get(_LINEAGE)
    return told == (evidence.evaluation_sha256, origin.sha256)


def _record(
    client: MlflowClient, evidence: Evidence, origin: Provenance, known: ModelVersion | None, root: Path
) -> ModelVersion:
    """A run with all that is known of the policy; its model too, unless that is `known` and only the rest is new."""
    import mlflow

    params, name = origin.params, origin.params.register_model.model_name
    experiment = experiment_id(client, params.register_model.experiment, root)
    tags = {**_tags(evidence, origin), "kind": "model"}
    with tracked_run(client, experiment, f"{name} {evidence.model_sha256[:8]}", tags) as run_id:
        tags["run_id"] = run_id
        log_parameters(client, run_id, params.model_dump(mode="json"))
        log_inputs(client, run_id, origin.record["inputs"] or _contents(root), "training and evaluation")
        log_curve(client, run_id, evidence.curve)
        for file, text in origin.files.items():
            client.log_text(run_id, text, f"{FOLDER}/{file}")
        client.log_text(run_id, canonical_json(origin.record), f"{FOLDER}/{RECORD}")
        logged = log_policy(evidence.checkpoint, params) if known is None else None
        model_id = logged.model_id if logged is not None else (known.tags.get("model_id") if known else None)
        if model_id is not None:
            tags["model_id"] = model_id  # MLflow's own field of a version is empty when it is read back
        _log_evaluation(client, run_id, evidence, origin, root, model_id)
        scrub = scrub_of(params.model_dump(mode="json"))
        log_traces(root, experiment, run_id, model_id, scrub)
        if logged is not None:
            # tagged in the same call, so that a kill in between leaves no version without its hash
            return mlflow.register_model(logged.model_uri, name, tags=tags)
    assert known is not None
    _tag_anew(client, known, tags)
    return client.get_model_version(name, known.version)


def _tag_anew(client: MlflowClient, version: ModelVersion, tags: dict[str, str]) -> None:
    """Replace a version's tags. A kill in between leaves it without a lineage, so that the next registration heals it,
    and without figures, so that no score stands beside a benchmark that it was not measured on.
    """
    client.set_model_version_tag(version.name, version.version, _LINEAGE, "")
    for key in version.tags:
        if key.startswith("heldout_"):
            client.delete_model_version_tag(version.name, version.version, key)
    for key in sorted(tags, key=lambda key: (key == _LINEAGE, key.startswith("heldout_"))):
        client.set_model_version_tag(version.name, version.version, key, tags[key])


def _log_evaluation(
    client: MlflowClient, run_id: str, evidence: Evidence, origin: Provenance, root: Path, model_id: str | None
) -> None:
    tasks = TASKS.as_posix()
    digest = content_of(origin.lock, tasks) or content_md5(root / TASKS)
    figures = evidence.evaluation.get("policies", {})
    log_figures(client, run_id, figures, prefix="evaluation", model_id=model_id, dataset=(tasks, digest))
    for report in evidence.reports:
        client.log_artifact(run_id, str(report), report.parent.name)


def _contents(root: Path) -> dict[str, str]:
    """Without a dvc.lock: the hashes that DVC would give what is there."""
    return {path: content_md5(root / path) for path in INPUTS if (root / path).exists()}


def _tags(evidence: Evidence, origin: Provenance) -> dict[str, str]:
    tags = {
        "model_sha256": evidence.model_sha256,
        "data_sha256": evidence.data_sha256,
        "benchmark_sha256": evidence.benchmark_sha256,
        "evaluation_sha256": evidence.evaluation_sha256,
        "params_sha256": origin.record["params_sha256"],
        _LINEAGE: origin.sha256,
        "profile": origin.params.profile,
    }
    for figure in ("reward", "success"):
        value = heldout(evidence.evaluation, "trained", figure)
        if value is not None:
            tags[f"heldout_{figure}"] = repr(value)
    if "dvc.lock" in origin.files:
        tags["dvc_lock_sha256"] = origin.record["files"]["dvc.lock"]
    return {**tags, "git_commit": origin.git_commit} if origin.git_commit else tags
