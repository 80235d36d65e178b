"""A checkpoint as a model of MLflow: from code, nothing pickled, with the form of the chats that it answers."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.errors import TrackingError
from envace.tracking.runs import NO_REPOSITORY
from envace.tracking.store import local_path

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

_CODE = Path(__file__).with_name("pyfunc_model.py")
_NEEDS = ("mlflow", "torch", "transformers", "tokenizers", "safetensors", "jinja2")


def log_policy(checkpoint: Path, params: Params) -> Any:
    """Log into the active run: weights, tokenizer, rollout settings and signature. Returns MLflow's ModelInfo."""
    import mlflow

    with warnings.catch_warnings():
        # with an input example MLflow would load the model and answer it, only to check the signature
        warnings.filterwarnings("ignore", ".*An input example was not provided")
        return mlflow.pyfunc.log_model(
            name="policy",
            python_model=str(_CODE),
            artifacts={"checkpoint": str(checkpoint.resolve())},
            model_config={"max_new_tokens": params.rollout.max_act_tokens},
            metadata={"rollout": params.rollout.model_dump(mode="json")},
            signature=chat_signature(),
            tags=dict(NO_REPOSITORY),
            # stated, else MLflow would load the model in another process to find out
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in _NEEDS],
        )


def chat_signature() -> ModelSignature:
    """`messages` and, where there are any, `tools`, both in the OpenAI form; one text comes back for each chat.

    So a server of MLflow (`mlflow models serve`) takes {"messages": [...], "tools": [...]} as it is.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import AnyType, Array

    chat: list[Any] = [ColSpec(Array(AnyType()), "messages"), ColSpec(AnyType(), "tools", required=False)]
    return ModelSignature(inputs=Schema(chat), outputs=Schema([ColSpec(DataType.string)]))


def registered_checkpoint(location: str) -> Path:
    """The folder with weights and tokenizer in a model's artifacts. Raises TrackingError where it is gone."""
    import yaml

    folder = local_path(location)
    try:
        described = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))
        return folder / described["flavors"]["python_function"]["artifacts"]["checkpoint"]["path"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise TrackingError(
            f"{folder}: no readable model ({type(error).__name__}); `envace run` makes it anew"
        ) from None
