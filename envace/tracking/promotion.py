"""The aliases `challenger` and `champion`: moved under the registry's lock, and only as far as the gate lets them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.errors import TrackingError
from envace.files import read_json
from envace.locks import LOCKS, held
from envace.tracking.gate import Floor, floors, refusal, rewards_by_benchmark
from envace.tracking.store import local_path, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

CHALLENGER, CHAMPION = "challenger", "champion"
_WAIT_S = 300.0


@contextmanager
def registry_lock(root: Path = Path()) -> Iterator[None]:
    """One process at a time registers or promotes. Raises StageError naming the holder after five minutes."""
    with held("registry", what="the model registry", wait_s=_WAIT_S, folder=root / LOCKS):
        yield


def promote(params: Params, name: str, version: str, root: Path = Path()) -> str | None:
    """Let the gate decide anew on a version that is registered, by the figures recorded with it.

    The floors are those of `params`. Returns why it did not become champion, None if it is. Raises TrackingError.
    """
    client = open_store(root)
    with registry_lock(root):
        found = find_version(client, name, version)
        evaluation = recorded_evaluation(client, found)
        conditions = floors(evaluation, params.register_model)
        return decide(client, found, conditions)


def decide(client: MlflowClient, version: ModelVersion, conditions: list[Floor]) -> str | None:
    """Make the version champion if the gate lets it, and set its tag `gate`. The registry's lock must be held.

    Returns why it did not become champion, None if it is.
    """
    number = client.get_registered_model(version.name).aliases.get(CHAMPION)
    if number is not None and str(number) == str(version.version):
        return None
    champion = client.get_model_version(version.name, number).tags if number is not None else None
    best = rewards_by_benchmark(champion) if champion is not None else None
    reason = refusal(conditions, rewards_by_benchmark(version.tags), best)
    # the tag first: a kill in between leaves a champion as it was
    client.set_model_version_tag(version.name, version.version, "gate", f"refused: {reason}" if reason else "promoted")
    if reason is None:
        client.set_registered_model_alias(version.name, CHAMPION, version.version)
    return reason


def find_version(client: MlflowClient, name: str, version: str) -> ModelVersion:
    """A version by its number or by an alias. Raises TrackingError that names the ones there are."""
    from mlflow.exceptions import MlflowException

    try:
        if version.isdecimal():
            return client.get_model_version(name, version)
        return client.get_model_version_by_alias(name, version)
    except MlflowException:
        known = client.search_registered_models()
        versions = client.search_model_versions(f"name = '{name}'") if name in {m.name for m in known} else []
        there = ", ".join(sorted((f"{name}/{v.version}" for v in versions), key=lambda t: int(t.rpartition("/")[2])))
        models = ", ".join(sorted(model.name for model in known)) or "none"
        hint = f"its versions are {there}" if there else f"the registered models are: {models}"
        raise TrackingError(f"{name}/{version}: no such version in the registry; {hint}") from None


def recorded_evaluation(client: MlflowClient, version: ModelVersion) -> dict[str, Any]:
    """The evaluation that was recorded with a version. Raises TrackingError where it is gone."""
    run_id = version.tags.get("run_id")
    if run_id is None:
        raise TrackingError(
            f"{version.name}/{version.version}: no evaluation of it is known, since it has no tag run_id; register it "
            "by `envace run`"
        )
    run = client.get_run(run_id)
    path = local_path(str(run.info.artifact_uri)) / "evaluation" / "metrics.json"
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise TrackingError(f"{path}: not readable ({type(error).__name__}); `envace run` registers it anew") from None
