"""The jobs that are not stages: one policy evaluated on the first tasks, the loss on references, the simulator."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from envace.config import Params, parse_params
from envace.data.tables import write_tables
from envace.errors import DataError
from envace.experiment import evaluation_job, loss_job
from envace.experiment.evaluation_job import by_task
from envace.experiment.loss_job import reference_loss, reference_of
from envace.experiment.simulator import world_simulator
from envace.files import read_json, write_json
from envace.types import Task


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample_tasks: list[Task]) -> Path:
    """A job's folder, with four held-out and three validation tasks."""
    monkeypatch.chdir(tmp_path)
    splits = ["heldout"] * 4 + ["validation"] * 3
    tasks = [t.model_copy(update={"split": s}) for t, s in zip(sample_tasks, splits, strict=False)]
    write_tables(tmp_path / "prepared", tasks)
    return tmp_path


def ask(folder: Path, policy: Path, **more: Any) -> None:
    write_json(folder / "job.json", {"policy": str(policy), "tasks": str(folder / "prepared/tasks.parquet"), **more})


def test_one_policy_is_evaluated_on_as_many_tasks_as_asked(
    folder: Path, saved_policy: Path, params: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = params.model_dump()
    raw["rollout"] |= {"max_act_tokens": 8, "max_rehearse_tokens": 8}
    ask(folder, saved_policy, count=3, split="heldout")
    evaluation_job.run(parse_params(raw, ""))
    metrics = read_json(folder / "metrics.json")
    repeats = params.evaluate_policy.repeats
    assert metrics["true"]["rollouts"] == metrics["rehearsed"]["rollouts"] == 3 * repeats
    tasks = metrics["by_task"]["true"]["reward"]
    assert len(tasks) == 3 and metrics["true"]["reward"] == pytest.approx(sum(tasks.values()) / 3, abs=1e-6)
    assert "error_recall" in metrics["fidelity"] and (folder / "rollouts.parquet").is_file()
    assert "reward 0." in capsys.readouterr().out
    ask(folder, saved_policy, count=5, split="heldout")
    with pytest.raises(DataError, match="4 heldout tasks, and the plan asks for 5"):
        evaluation_job.run(parse_params(raw, ""))


def test_figures_by_task_leave_out_what_has_no_reward() -> None:
    def row(task: str, reward: float | None, environment: str = "true") -> dict[str, Any]:
        return {"task_id": task, "reward": reward, "success": reward == 1.0, "environment": environment}

    found = by_task([row("a", 1.0), row("a", 0.5), row("a", None), row("b", None), row("a", 0.25, "rehearsed")])
    assert found == {
        "rehearsed": {"reward": {"a": 0.25}, "success": {"a": 0.0}},
        "true": {"reward": {"a": 0.75}, "success": {"a": 0.5}},
    }


def test_the_loss_is_the_mean_over_learned_tokens_of_single_rows(
    folder: Path, saved_policy: Path, sample_tasks: list[Task], params: Params
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from envace.chat.layout import ChatLayout
    from envace.training.base_model.rows import demonstration_rows

    layout = ChatLayout(AutoTokenizer.from_pretrained(saved_policy))
    model = AutoModelForCausalLM.from_pretrained(saved_policy).eval()
    total, count = 0.0, 0
    for task in sample_tasks[4:7]:
        for row in demonstration_rows(layout, reference_of(task)):
            with torch.no_grad():
                logs = model(input_ids=torch.tensor([row.ids])).logits[0].log_softmax(-1)
            learned = [(i, label) for i, label in enumerate(row.labels) if label >= 0]
            total -= sum(float(logs[i - 1, label]) for i, label in learned)
            count += len(learned)
    ask(folder, saved_policy)
    loss_job.run(params)
    found = read_json(folder / "loss.json")
    assert found["loss"] == pytest.approx(total / count, abs=1e-4) and (found["tokens"], found["tasks"]) == (count, 3)
    again, _ = reference_loss(saved_policy, list(reversed(sample_tasks[4:7])))
    assert again == pytest.approx(total / count, abs=1e-4)


def test_a_loss_needs_validation_tasks(
    folder: Path, saved_policy: Path, params: Params, sample_tasks: list[Task]
) -> None:
    write_tables(folder / "prepared", [sample_tasks[0]])
    ask(folder, saved_policy)
    with pytest.raises(DataError, match="no validation task"):
        loss_job.run(params)


def test_the_simulator_answers_as_the_world_does(make_task: Callable[..., Task]) -> None:
    from envace.data.sample import build_world

    call = {"name": "get_weather", "arguments": {"city": "Oslo", "day": "Monday"}}
    messages = [
        {"role": "assistant", "content": f"<tool_call>\n{json.dumps(call)}\n</tool_call>"},
        {"role": "user", "content": "Answer call 1 of the 1 in the last assistant message"},
    ]
    with world_simulator(3) as server:
        reply = httpx.post(f"{server.base_url}/chat/completions", json={"messages": messages}, timeout=10).json()
    said = json.loads(reply["choices"][0]["message"]["content"])
    assert said == build_world(3).execute(call["name"], call["arguments"])


def test_a_simulator_takes_its_port_again_and_another_where_that_is_taken() -> None:
    with world_simulator() as server:
        port = server.server_port
    with world_simulator(0, port) as server:
        assert server.server_port == port
    with socket.create_server(("127.0.0.1", 0)) as taken, world_simulator(0, taken.getsockname()[1]) as server:
        assert server.server_port != taken.getsockname()[1]
