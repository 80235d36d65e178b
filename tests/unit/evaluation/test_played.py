"""Who plays which role: a training of two policies is evaluated as it was trained, each role by its own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.config import Params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, to_raw_record
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.errors import DataError
from envace.evaluation.evaluate import evaluate_policy
from envace.evaluation.fidelity import measure_fidelity
from envace.evaluation.played import EngineByRole, Played, trained_policy
from envace.training.base_model.build import save_policy
from envace.types import Role, Task


class Named:
    """An engine that answers with its own number."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def generate(self, request: GenerationRequest) -> Generation:
        return Generation([self.number], [0.0])


def folder(path: Path, content: str) -> Path:
    path.mkdir(parents=True)
    (path / "model.safetensors").write_text(content, encoding="utf-8")
    return path


def test_each_role_is_asked_of_its_own_engine() -> None:
    engine = EngineByRole(Named(1), Named(2))
    answers = [asyncio.run(engine.generate(GenerationRequest("s", [0], 1, 0.0, 1.0, 0, role=r))) for r in Role]
    assert dict(zip(Role, (a.token_ids for a in answers), strict=True)) == {Role.ACT: [1], Role.REHEARSE: [2]}


def test_the_second_policy_is_that_of_the_exported_one(tmp_path: Path) -> None:
    policy, trained = folder(tmp_path / "policy", "b"), tmp_path / "trained"
    folder(trained / "last", "a")
    folder(trained / "best", "b")
    assert trained_policy(policy, trained) == Played(policy)
    folder(trained / "last-rehearse", "c")
    second = folder(trained / "best-rehearse", "d")
    assert trained_policy(policy, trained) == Played(policy, second)
    shutil.rmtree(trained / "best")
    folder(trained / "best", "something else")
    with pytest.raises(DataError, match="which policy rehearses for it is unknown"):
        trained_policy(policy, trained)


def test_two_policies_act_as_the_first_and_rehearse_as_the_second(
    params: Params, random_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    world = build_world(0)
    conversations = generate_conversations(world, 3, 0, "heldout")
    tasks = [to_task(to_raw_record(world, c), "heldout", [], "") for c in conversations]
    for seed in (0, 1):
        save_policy(random_model(seed), tokenizer, tmp_path / str(seed))
    small = params.rollout.model_copy(update={"max_act_tokens": 8, "max_rehearse_tokens": 8})

    def evaluated(played: Played) -> Any:
        how: Any = {"evaluation": params.evaluate_policy, "rollout": small, "reward": params.reward}
        found = evaluate_policy("trained", played, tasks=tasks, **how)
        return [r["outputs"][0]["text"] for r in found.rows]

    alone = [evaluated(Played(tmp_path / str(seed))) for seed in (0, 1)]
    assert alone[0] != alone[1]
    assert evaluated(Played(tmp_path / "0", tmp_path / "1")) == alone[0]


def test_fidelity_is_that_of_the_policy_that_rehearses(
    layout: ChatLayout, sample_tasks: list[Task], params: Params
) -> None:
    task = next(t for t in sample_tasks if sum(len(s.tool_results) for s in t.turns[0].reference_steps) == 1)
    results = [r.content for t in task.turns for s in t.reference_steps for r in s.tool_results]
    roomy = params.rollout.model_copy(update={"max_prompt_tokens": 2000, "max_rehearse_tokens": 60})
    for engine, exact in (
        (EngineByRole(Named(1), ScriptedEngine(layout, results)), 1.0),
        (EngineByRole(ScriptedEngine(layout, results), Named(1)), 0.0),
    ):
        found = asyncio.run(measure_fidelity([task], engine=engine, layout=layout, rollout=roomy))
        assert found["exact"] == exact
