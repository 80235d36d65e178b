"""One MLflow run for one policy: parameters, training curve, evaluation, reports, and its model from code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.tracking.evidence import Evidence
from envace.tracking.names import leaves, numbers, parameter_texts, path_name, safe_name

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 1000  # MLflow's limit of metrics a call
_MODEL_CODE = Path(__file__).with_name("pyfunc_model.py")
_MODEL_NEEDS = ("mlflow", "torch", "transformers", "tokenizers", "safetensors", "jinja2")


@contextmanager
def tracked_run(experiment: str, name: str, tags: dict[str, str]) -> Iterator[str]:
    """A run of MLflow, its id given. Ends as FINISHED, as FAILED after an error, as KILLED after an interrupt."""
    import mlflow

    run = mlflow.start_run(experiment_id=experiment, run_name=name, tags=tags)
    try:
        yield run.info.run_id
    except Exception:
        mlflow.end_run("FAILED")
        raise
    except BaseException:
        mlflow.end_run("KILLED")
        raise
    mlflow.end_run("FINISHED")


def log_parameters(params: Params) -> None:
    """All of params.yaml, flattened; whole texts that are too long for MLflow go into an artifact."""
    import mlflow

    stored, long = parameter_texts(params.model_dump(mode="json"))
    mlflow.log_params(stored)
    mlflow.log_dict(params.model_dump(mode="json"), "params.json")
    if long:
        mlflow.log_dict(long, "long_params.json")


def log_curve(client: MlflowClient, run_id: str, curve: list[dict[str, Any]]) -> None:
    """Every numeric figure of every step. What is no number is flagged by a tag and listed in an artifact."""
    import mlflow
    from mlflow.entities import Metric

    now, metrics, strange = int(time.time() * 1000), [], {}
    for row in curve:
        named = ((safe_name(key), value) for key, value in row.items() if key != "step")
        finite, flagged = numbers(named)
        metrics += [Metric(name, value, now, row["step"]) for name, value in finite.items()]
        strange |= {f"{name} at step {row['step']}": word for name, word in flagged.items()}
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[start : start + _BATCH])
    if strange:
        mlflow.set_tag("nonfinite_values", str(len(strange)))
        mlflow.log_dict(strange, "nonfinite_values.json")


def log_evaluation(evidence: Evidence, model_id: str | None) -> None:
    """The evaluation's figures as final metrics, tied to the model where there is one, and the reports as they are."""
    import mlflow

    found = leaves(evidence.evaluation.get("policies", {}))
    finite, _ = numbers((f"evaluation/{path_name(path)}", value) for path, value in found)
    mlflow.log_metrics(finite, model_id=model_id)
    for report in evidence.reports:
        mlflow.log_artifact(str(report), report.parent.name)


def log_policy(checkpoint: Path, params: Params) -> Any:
    """The checkpoint as a model from code: nothing is pickled. Returns MLflow's ModelInfo."""
    import mlflow

    return mlflow.pyfunc.log_model(
        name="policy",
        python_model=str(_MODEL_CODE),
        artifacts={"checkpoint": str(checkpoint.resolve())},
        model_config={"max_new_tokens": params.rollout.max_act_tokens},
        metadata={"rollout": params.rollout.model_dump(mode="json")},
        # stated, else MLflow would load the model in another process to find out
        pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in _MODEL_NEEDS],
    )
