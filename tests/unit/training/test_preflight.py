"""Before a training starts: every fault that can be known is found, says what to do, and is told beside the others."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import envace.training.preflight as module
from envace.config import Params
from envace.errors import CheckpointError, TrainingError
from envace.training.model_folder import model_faults, parameter_count
from envace.training.preflight import (
    batch_faults,
    disk_faults,
    endpoint_faults,
    endpoints_in_use,
    gpu_faults,
    judge_faults,
    preflight,
    verl_faults,
)
from envace.types import Criterion, Evidence, Rubric, Task
from tests.unit.endpoints.stub import Behaviour, completion, hangs, http, says, stub


@pytest.fixture
def model(saved_policy: Path, tmp_path: Path) -> Path:
    """A model folder to spoil."""
    return Path(shutil.copytree(saved_policy, tmp_path / "model"))


def training(params: Params, **changes: Any) -> Params:
    return params.model_copy(update={"train_policy": params.train_policy.model_copy(update=changes)})


def test_the_shipped_parameters_pass(
    params: Params, model: Path, sample_tasks: list[Task], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preflight(params, sample_tasks, model, tmp_path / "state")
    assert capsys.readouterr().out == ""


def test_all_faults_are_told_at_once(
    params: Params, model: Path, sample_tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_version", lambda name: "0.8.0" if name == "verl" else "1")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    (model / "tokenizer.json").unlink()
    hardware = params.train_policy.hardware.model_copy(update={"nodes": 3, "gpus_per_node": 1})
    faulty = training(params, backend="cuda", hardware=hardware)
    cold = params.rollout.act.model_copy(update={"temperature": 0.0})
    faulty = faulty.model_copy(update={"rollout": params.rollout.model_copy(update={"act": cold})})
    monkeypatch.setattr(module, "_gpus", lambda: 0)
    with pytest.raises(TrainingError, match=r"not started, for 7 reason\(s\)") as raised:
        preflight(faulty, sample_tasks, model, tmp_path / "state")
    for named in ("verl 0.8.0", "tokenizer.json", "3 GPUs", "keep_checkpoints", "nvidia-smi lists none"):
        assert named in str(raised.value)
    for named in ("temperature differ", "temperature is 0"):  # what params ask of verl
        assert named in str(raised.value)


@pytest.mark.parametrize(
    ("installed", "told"),
    [
        ({"ray": "1", "tensordict": "1", "TransferQueue": "1"}, "verl is not installed"),
        ({"verl": "0.9.0", "ray": "1", "tensordict": "1", "TransferQueue": "1"}, r"verl 0\.9\.0 .*made for 0\.9\.1"),
        ({"verl": "0.9.1", "ray": "1", "tensordict": "1"}, "TransferQueue: not installed"),
    ],
)
def test_a_missing_or_wrong_verl_is_told(installed: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_version", installed.get)
    (fault,) = verl_faults()
    assert re.search(told, fault) and "pip install --no-deps -r constraints/cpu.txt" in fault


def test_the_version_is_the_pinned_one(project_root: Path) -> None:
    assert list(verl_faults()) == []
    assert f"verl=={module.VERL}" in (project_root / "pyproject.toml").read_text()


def fake_smi(folder: Path, script: str) -> None:
    command = folder / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)


@pytest.mark.parametrize(
    ("smi", "vllm", "told"),
    [
        ("echo 'GPU 0: NVIDIA H200'; echo 'GPU 1: NVIDIA H200'", "0.24.0", []),
        ("echo 'GPU 0: NVIDIA H200'", "0.24.0", ["nvidia-smi lists 1 on this machine"]),
        ("exit 9", "0.24.0", ["nvidia-smi lists none"]),
        (None, "0.24.0", ["nvidia-smi lists none"]),
        ("exit 9", None, ["nvidia-smi lists none", "vllm is not installed"]),
    ],
)
def test_a_backend_that_this_machine_cannot_serve_is_told(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smi: str | None, vllm: str | None, told: list[str]
) -> None:
    if smi:
        fake_smi(tmp_path, smi)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "_version", {"vllm": vllm}.get)
    hardware = params.train_policy.hardware.model_copy(update={"gpus_per_node": 2})
    faults = list(gpu_faults(training(params, backend="cuda", hardware=hardware).train_policy))
    assert len(faults) == len(told) and all(t in f for t, f in zip(told, faults, strict=True))
    assert list(gpu_faults(params.train_policy)) == []  # backend cpu asks for neither


def spoil_config(model: Path, **changes: Any) -> None:
    config = json.loads((model / "config.json").read_text()) | changes
    (model / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def without_template(model: Path) -> None:
    (model / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((model / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (model / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda m: (m / "config.json").unlink(), "no readable config.json"),
        (lambda m: (m / "config.json").write_text("{"), "no readable config.json"),
        (lambda m: (m / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda m: (m / "tokenizer.json").write_text("{}"), "its tokenizer cannot be loaded"),
        (without_template, "no chat template"),
        (lambda m: (m / "chat_template.jinja").write_text("{{ messages[0].content }}"), "chat template"),
        (
            lambda m: spoil_config(m, max_position_embeddings=559),
            "512 and an output of 48 tokens make 560, more than the 559",
        ),
        (lambda m: spoil_config(m, max_position_embeddings=None), "states no max_position_embeddings"),
        (lambda m: (m / "model.safetensors").unlink(), "no .safetensors file"),
        (lambda m: (m / "model.safetensors").write_bytes(b"\xff" * 40), "not a whole safetensors file"),
        (lambda m: (m / "model.safetensors").write_bytes(b""), "not a whole safetensors file"),
        (lambda m: (m / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]"), "not a whole safetensors file"),
    ],
)
def test_a_model_folder_that_cannot_be_trained_is_told(
    params: Params, model: Path, spoil: Callable[[Path], Any], told: str
) -> None:
    assert list(model_faults(model, params.rollout)) == []
    spoil(model)
    (fault,) = model_faults(model, params.rollout)
    assert told in fault and str(model) in fault


def test_a_context_that_just_fits_is_no_fault(params: Params, model: Path) -> None:
    spoil_config(model, max_position_embeddings=560)
    assert list(model_faults(model, params.rollout)) == []


def test_parameters_are_counted_from_the_headers(model: Path, random_model: Callable[..., Any]) -> None:
    assert parameter_count(model) == sum(p.numel() for p in random_model().parameters())
    with pytest.raises(CheckpointError, match=r"no \.safetensors"):
        parameter_count(model / "missing")


@pytest.mark.parametrize(("gpus", "fits"), [((1, 1), True), ((2, 8), True), ((1, 3), False), ((5, 1), False)])
def test_rollouts_that_the_gpus_cannot_share_are_told(params: Params, gpus: tuple[int, int], fits: bool) -> None:
    hardware = params.train_policy.hardware.model_copy(update={"nodes": gpus[0], "gpus_per_node": gpus[1]})
    train = training(params, backend="cuda", hardware=hardware).train_policy
    faults = list(batch_faults(train))
    assert (not faults) == fits
    assert fits or "make 64 rollouts a step" in faults[0]


def test_too_little_disk_is_told_with_what_is_needed(
    params: Params, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, state = params.train_policy, tmp_path / "not" / "yet" / "there"
    needed = parameter_count(model) * (16 * (train.keep_checkpoints + 2) + 12)
    for free, fits in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(module.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        faults = list(disk_faults(train, model, state))
        assert (not faults) == fits
    assert str(tmp_path) in faults[0] and "0.0 GB free" in faults[0] and "4 of" in faults[0]
    state.mkdir(parents=True)  # what is there already, of this run or another, is written over or could be removed
    (state / "checkpoint").write_bytes(b"x" * 10)
    assert list(disk_faults(train, model, state)) == []


def test_an_endpoint_is_asked_only_where_it_is_used(params: Params, sample_tasks: list[Task]) -> None:
    judge = params.reward.judge.model_copy(update={"kind": "hybrid"})
    asking = params.model_copy(update={"reward": params.reward.model_copy(update={"judge": judge})})
    checklists = [task.model_copy(update={"outcome": None}) for task in sample_tasks[:3]]
    assert endpoints_in_use(params, checklists) == {}
    assert endpoints_in_use(asking, sample_tasks[:3]) == {}, "their outcomes are scored by code"
    assert list(endpoints_in_use(asking, checklists)) == ["reward.judge.endpoint"]
    assert list(endpoints_in_use(training(params, method="grpo"), [])) == ["train_policy.simulator.endpoint"]


@pytest.fixture
def serve(params: Params) -> Iterator[Callable[..., Any]]:
    """Starts an endpoint with one behaviour in a thread; gives its parameters."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running: list[Any] = []

    def start(behaviour: Behaviour, **changes: Any) -> Any:
        context = stub(behaviour)
        made = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(10)
        running.append((context, made))
        address = {"base_url": f"http://127.0.0.1:{made.port}/v1", "model": "m", "timeout_s": 0.3}
        return params.reward.judge.endpoint.model_copy(update=address | changes)

    start.running = running  # type: ignore[attr-defined]
    yield start
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_an_endpoint_that_answers_is_asked_once(serve: Any) -> None:
    assert endpoint_faults({"reward.judge.endpoint": serve(says(http(completion())))}) == []
    ((_, made),) = serve.running
    assert len(made.requests) == 1 and made.requests[0][1]["max_tokens"] <= 16


@pytest.mark.parametrize("kind", ["nobody", "refuses", "hangs", "forbidden", "no key"])
def test_an_endpoint_that_does_not_answer_is_told_by_its_key(serve: Any, kind: str) -> None:
    behaviour = {"refuses": says(http(b"{}", "404 Not Found")), "hangs": hangs}.get(kind, says(http(completion())))
    changes: dict[str, Any] = {"forbidden": {"allowed_hosts": []}, "no key": {"api_key_env": "ENVACE_NO_SUCH_KEY"}}
    params = serve(behaviour, **changes.get(kind, {}))
    if kind == "nobody":
        params = params.model_copy(update={"base_url": "http://127.0.0.1:9/v1"})
    (fault,) = endpoint_faults({"train_policy.simulator.endpoint": params})
    assert fault.startswith("train_policy.simulator.endpoint: ") and "start the server" in fault


def checklist(task: Task, *conditions: str) -> Task:
    """A task scored by criteria about a call of a tool, of which code understands those that say nothing else."""
    call = next(c for turn in task.turns for step in turn.reference_steps for c in step.tool_calls)
    quoted = json.dumps({"name": call.tool_name, "arguments": json.loads(call.arguments)})
    criteria = [
        Criterion(
            criterion_id=f"t0.c{i}",
            turn_index=0,
            target="tool_call",
            question="",
            failure_examples=[],
            prerequisite_ids=[],
            pass_condition=condition.replace("CALL", f"a call of {call.tool_name} with arguments {call.arguments}"),
            evidence=[Evidence(turn=0, step=0, source="tool_call", snippet=quoted)],
            weight=1.0,
            source_weight=1.0,
            is_gating=False,
        )
        for i, condition in enumerate(conditions)
    ]
    only = task.model_copy(update={"turns": task.turns[:1], "outcome": None, "split": "train"})
    return only.model_copy(update={"rubrics": [Rubric(variant_index=0, criteria=criteria)]})


@pytest.fixture
def calling(sample_tasks: list[Task]) -> Task:
    return next(t for t in sample_tasks if t.turns[0].reference_steps[0].tool_calls)


def test_a_judge_that_can_decide_nothing_is_a_fault(params: Params, calling: Task) -> None:
    vague = checklist(calling, "The assistant is polite.", "The plan is sensible.")
    said: list[str] = []
    (fault,) = judge_faults(params.reward, [vague, vague], said.append)
    assert "0 of the 4 criteria of 2 training tasks" in fault and "hybrid" in fault and said == []


def test_a_judge_that_can_decide_few_criteria_says_how_many(params: Params, calling: Task) -> None:
    said: list[str] = []
    mixed = checklist(calling, "There is CALL", "The assistant is polite.", "The plan is sensible.")
    assert list(judge_faults(params.reward, [mixed], said.append)) == []
    assert len(said) == 1 and "1 of the 3 criteria of 1 training tasks" in said[0]
    said.clear()
    assert list(judge_faults(params.reward, [checklist(calling, "There is CALL")], said.append)) == [] and said == []


def test_undecidable_checklists_beside_outcomes_are_only_told(params: Params, calling: Task) -> None:
    said: list[str] = []
    vague = checklist(calling, "The assistant is polite.")
    scored = calling.model_copy(update={"split": "train"})
    assert list(judge_faults(params.reward, [vague, scored], said.append)) == [] and len(said) == 1
    strict = params.reward.model_copy(update={"kind": "checklist"})
    assert len(list(judge_faults(strict, [vague, scored.model_copy(update={"rubrics": []})], said.append))) == 1
