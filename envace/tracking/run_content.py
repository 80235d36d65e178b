"""What goes into a run: parameters, curves, figures, data versions. Nothing is lost; what is no number is flagged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from envace.tracking.names import leaves, numbers, parameter_texts, path_name, safe_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 1000  # MLflow's limit of metrics a call
_PARAMS_BATCH = 100
NONFINITE = "nonfinite_values"


def log_parameters(client: MlflowClient, run_id: str, values: Mapping[str, Any]) -> None:
    """Nested parameters, flattened; all of them also as params.json, and texts too long for MLflow in an artifact."""
    from mlflow.entities import Param

    stored, long = parameter_texts(values)
    params = [Param(name, text) for name, text in stored.items()]
    for start in range(0, len(params), _PARAMS_BATCH):
        client.log_batch(run_id, params=params[start : start + _PARAMS_BATCH])
    client.log_dict(run_id, dict(values), "params.json")
    if long:
        client.log_dict(run_id, long, "long_params.json")


def log_curve(client: MlflowClient, run_id: str, curve: Iterable[Mapping[str, Any]]) -> None:
    """Every numeric figure of every step. What is no number is flagged by a tag and listed in an artifact."""
    from mlflow.entities import Metric

    now, metrics, strange = int(time.time() * 1000), [], {}
    for row in curve:
        named = ((safe_name(key), value) for key, value in row.items() if key != "step")
        finite, flagged = numbers(named)
        metrics += [Metric(name, value, now, row["step"]) for name, value in finite.items()]
        strange |= {f"{name} at step {row['step']}": word for name, word in flagged.items()}
    _write(client, run_id, metrics, strange)


def log_figures(
    client: MlflowClient,
    run_id: str,
    figures: Mapping[str, Any],
    *,
    prefix: str,
    model_id: str | None = None,
    dataset: tuple[str, str] | None = None,
) -> None:
    """The numbers in nested figures as final metrics, tied to a model and to a data set (its name and digest)."""
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    named = ((f"{prefix}/{path_name(path)}", value) for path, value in leaves(figures))
    finite, flagged = numbers(named)
    name, digest = dataset or (None, None)
    metrics = [
        Metric(key, value, now, 0, model_id=model_id, dataset_name=name, dataset_digest=digest, run_id=run_id)
        for key, value in finite.items()
    ]
    _write(client, run_id, metrics, flagged)


def log_inputs(client: MlflowClient, run_id: str, inputs: Mapping[str, str], context: str) -> None:
    """Data versions that the run read: path to the content hash that DVC has recorded."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    entries = [
        DatasetInput(
            Dataset(name=path, digest=content, source_type="dvc", source=f'{{"path": "{path}"}}'),
            [InputTag("mlflow.data.context", context)],
        )
        for path, content in inputs.items()
    ]
    if entries:
        client.log_inputs(run_id, datasets=entries)


def _write(client: MlflowClient, run_id: str, metrics: list[Any], strange: Mapping[str, str]) -> None:
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[start : start + _BATCH])
    if strange:
        known = client.get_run(run_id).data.tags.get(NONFINITE, "0")
        client.set_tag(run_id, NONFINITE, str(int(known) + len(strange)))
        client.log_dict(run_id, dict(strange), f"{NONFINITE}/{int(known)}.json")
