"""Get-or-create of a registered model by the hash of its checkpoint, and the aliases `challenger` and `champion`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.files import canonical_json, sha256_text
from envace.locks import LOCKS, held
from envace.tracking.evidence import Evidence, git_commit, read_evidence
from envace.tracking.gate import Floor, floors, heldout, refusal
from envace.tracking.runs import log_curve, log_evaluation, log_parameters, log_policy, tracked_run
from envace.tracking.store import artifacts_exist, experiment_id, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

_WAIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Registration:
    """The outcome: `floors` follow from the files alone, the rest from what the registry held before."""

    model_name: str
    model_sha256: str
    data_sha256: str
    floors: list[Floor]
    version: str
    run_id: str
    aliases: list[str]
    refusal: str | None


def register(params: Params, root: Path = Path()) -> Registration:
    """Register models/policy under `register_model.model_name` unless its very bytes are registered already.

    It becomes `challenger` in any case, and `champion` if the gate lets it. Raises DataError or TrackingError.
    """
    evidence = read_evidence(root)
    conditions = floors(evidence.evaluation, params.register_model)
    client = open_store(root)
    with held("registry", what="the model registry", wait_s=_WAIT_S, folder=root / LOCKS):
        found = _find(client, params.register_model.model_name, evidence.model_sha256)
        if found is None or found.tags.get("evaluation_sha256") != evidence.evaluation_sha256:
            found = _record(client, params, evidence, found, root)
        reason = _decide(client, found, conditions, evidence)
        found = client.get_model_version(found.name, found.version)
    return Registration(
        model_name=found.name,
        model_sha256=evidence.model_sha256,
        data_sha256=evidence.data_sha256,
        floors=conditions,
        version=str(found.version),
        run_id=found.tags["run_id"],
        aliases=sorted(found.aliases),
        refusal=reason,
    )


def _find(client: MlflowClient, name: str, model_sha256: str) -> ModelVersion | None:
    same = client.search_model_versions(f"name = '{name}' and tags.`model_sha256` = '{model_sha256}'")
    whole = [v for v in same if artifacts_exist(client.get_model_version_download_uri(name, v.version))]
    return max(whole, key=lambda v: int(v.version), default=None)


def _record(
    client: MlflowClient, params: Params, evidence: Evidence, known: ModelVersion | None, root: Path
) -> ModelVersion:
    """A run with all that is known of the policy; its model too, unless that is `known` and only the rest is new."""
    import mlflow

    tags = _tags(params, evidence, root)
    name = params.register_model.model_name
    experiment = experiment_id(client, params.register_model.experiment, root)
    with tracked_run(experiment, f"{name} {evidence.model_sha256[:8]}", tags) as run_id:
        log_parameters(params)
        log_curve(client, run_id, evidence.curve)
        tags = {**tags, "run_id": run_id}
        if known is not None:
            log_evaluation(evidence, known.model_id)
            for key, value in tags.items():
                client.set_model_version_tag(name, known.version, key, value)
            return client.get_model_version(name, known.version)
        logged = log_policy(evidence.checkpoint, params)
        log_evaluation(evidence, logged.model_id)
        # tagged in the same call, so that a kill in between leaves no version without its hash
        return mlflow.register_model(logged.model_uri, name, tags=tags)


def _tags(params: Params, evidence: Evidence, root: Path) -> dict[str, str]:
    tags = {
        "model_sha256": evidence.model_sha256,
        "data_sha256": evidence.data_sha256,
        "evaluation_sha256": evidence.evaluation_sha256,
        "params_sha256": sha256_text(canonical_json(params.model_dump(mode="json"))),
        "profile": params.profile,
    }
    for figure in ("reward", "success"):
        value = heldout(evidence.evaluation, "trained", figure)
        if value is not None:
            tags[f"heldout_{figure}"] = repr(value)
    commit = git_commit(root)
    return {**tags, "git_commit": commit} if commit else tags


def _decide(client: MlflowClient, version: Any, conditions: list[Floor], evidence: Evidence) -> str | None:
    """Set the aliases and the tag `gate`. Returns why the version did not become champion, None if it did."""
    client.set_registered_model_alias(version.name, "challenger", version.version)
    number = client.get_registered_model(version.name).aliases.get("champion")
    if number is not None and str(number) == str(version.version):
        return None
    champion = client.get_model_version(version.name, number).tags if number is not None else None
    score = heldout(evidence.evaluation, "trained", "reward")
    reason = refusal(conditions, score, evidence.data_sha256, champion)
    if reason is None:
        client.set_registered_model_alias(version.name, "champion", version.version)
    client.set_model_version_tag(version.name, version.version, "gate", f"refused: {reason}" if reason else "promoted")
    return reason
