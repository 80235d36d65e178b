"""The registered model for someone who knows nothing but MLflow: loaded, and behind MLflow's own server."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.tracking.register import register
from envace.tracking.store import open_store

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Łódź"}}}
CHAT = [
    {"role": "user", "content": "What is the weather in Łódź?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"weather": "sunny"}'},
]


@pytest.fixture
def model(finished_project: Callable[..., Path], params: Params) -> Any:
    import mlflow

    project = finished_project()
    register(params, project)
    open_store(project)
    return mlflow.pyfunc.load_model("models:/envace-tiny@champion")


def test_a_registered_model_answers_tool_use_chats_in_python_and_over_http(model: Any) -> None:
    one = model.predict({"messages": CHAT, "tools": TOOLS})
    many = model.predict([{"messages": CHAT, "tools": TOOLS}, {"messages": CHAT[:1]}])
    assert len(one) == 1 and len(many) == 2 and one[0] == many[0] and all(isinstance(text, str) for text in many)
    names = [(column.name, column.required) for column in model.metadata.signature.inputs]
    assert names == [("messages", True), ("tools", False)]
    assert model.metadata.metadata["rollout"]["max_outputs"] == 16
    with pytest.raises(Exception, match="messages"):
        model.predict([{"prompt": "x"}])

    from mlflow.pyfunc.scoring_server import init

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient

    with TestClient(init(model)) as client:  # the application that `mlflow models serve` runs
        assert client.get("/health").status_code == 200
        said = client.post("/invocations", json={"messages": CHAT, "tools": TOOLS})
        assert said.status_code == 200 and said.json() == one
        rows = {"dataframe_records": [{"messages": CHAT, "tools": TOOLS}, {"messages": CHAT[:1]}]}
        assert client.post("/invocations", json=rows).json() == {"predictions": many}
        assert client.post("/invocations", json={"dataframe_records": [{"prompt": "x"}]}).status_code == 400
