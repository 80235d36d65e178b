"""Where runs and models are kept: one SQLite file and one folder of artifacts under .envace/mlflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from envace.errors import TrackingError
from envace.locks import LOCKS, held
from envace.quiet import be_quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SCHEMA_WAIT_S = 180.0


def database(root: Path = Path()) -> Path:
    """Absolute path of the SQLite file."""
    return (root / ".envace" / "mlflow" / "mlflow.db").resolve()


def store_uri(root: Path = Path()) -> str:
    """The address of the store. Absolute, so that it is the same from every working directory."""
    return f"sqlite:///{database(root)}"


def artifact_root(root: Path = Path()) -> Path:
    """Absolute path of the folder that holds the artifacts."""
    return database(root).parent / "artifacts"


def local_path(location: str) -> Path:
    """The path behind a `file:` address of the store."""
    return Path(url2pathname(urlsplit(location).path))


def artifacts_exist(location: str | None) -> bool:
    """Whether a `file:` address of the store leads to something."""
    return bool(location) and local_path(location).exists()


def open_store(root: Path = Path()) -> MlflowClient:
    """A client of the store, set up if this is its first use; also makes it the store of MLflow's own functions.

    Several first users at once would break the database, so the set-up happens under a lock. Raises TrackingError.
    """
    be_quiet()
    import mlflow
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    artifact_root(root).mkdir(parents=True, exist_ok=True)
    mlflow.set_tracking_uri(store_uri(root))
    mlflow.set_registry_uri(store_uri(root))
    try:
        with held("mlflow", what="the set-up of the MLflow store", wait_s=_SCHEMA_WAIT_S, folder=root / LOCKS):
            client = MlflowClient(store_uri(root), store_uri(root))
            client.search_experiments(max_results=1)
            client.search_registered_models(max_results=1)
    except (MlflowException, SQLAlchemyError) as error:
        raise TrackingError(
            f"{database(root)}: cannot be opened as an MLflow store ({' '.join(str(error).split())[:300]}); "
            "if it is damaged, move it away: the next run fills a new one"
        ) from error
    return client


def experiment_id(client: MlflowClient, name: str, root: Path = Path()) -> str:
    """The experiment called `name`, made if there is none, its artifacts under the project's own folder."""
    known = client.get_experiment_by_name(name)
    if known is not None:
        if known.lifecycle_stage == "deleted":
            client.restore_experiment(known.experiment_id)
        return known.experiment_id
    return client.create_experiment(name, artifact_location=artifact_root(root).as_uri())
