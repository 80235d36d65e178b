"""What the reports about the loop share: one task of hand, a chat layout, and rollouts on any engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout, render_calls
from envace.config import Params
from envace.data.sample import build_world, generate_demonstrations
from envace.engines.protocol import TokenEngine
from envace.engines.scripted import ScriptedEngine
from envace.files import compact_json
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Outcome, Rollout, Task, ToolCall, ToolSpec, Turn, TurnOutcome

ROOM = {"max_prompt_tokens": 4000, "max_act_tokens": 400, "max_rehearse_tokens": 200, "max_outputs": 12}


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """The tiny policy's kind of tokenizer."""
    from envace.training.base_model.tokenizer import build_tokenizer

    return build_tokenizer(generate_demonstrations(build_world(0), 60, 0), 600, 8192)


@pytest.fixture(scope="session")
def layout(tokenizer: Any) -> ChatLayout:
    """Its chat layout."""
    return ChatLayout(tokenizer)


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    """Makes a task of so many turns about the weather, each asking for one call and one fact."""

    def make(turns: int = 1, system_prompt: str | None = None) -> Task:
        properties = {"city": {"type": "string"}}
        schema = json.dumps({"type": "object", "properties": properties, "required": ["city"]})
        call = ToolCall(tool_name="get_weather", arguments='{"city": "Łódź"}')
        return Task(
            task_id="t0",
            content_sha256="",
            split="train",
            system_prompt=system_prompt,
            tools=[ToolSpec(name="get_weather", description="", parameters_schema=schema, schema_sha256="")],
            turns=[Turn(turn_index=i, user_message=f"Weather {i}?", reference_steps=[]) for i in range(turns)],
            rubrics=[],
            outcome=Outcome(turns=[TurnOutcome(required_calls=[call], required_facts=["sunny"])] * turns),
            world=None,
            flags=[],
            provenance="made by hand",
        )

    return make


@pytest.fixture(scope="session")
def write() -> Callable[..., str]:
    """Writes one call of the weather tool as a policy does."""
    return lambda city="Łódź": render_calls([ToolCall(tool_name="get_weather", arguments=compact_json({"city": city}))])


@pytest.fixture(scope="session")
def play(layout: ChatLayout, params: Params) -> Callable[..., Rollout]:
    """Unfolds a task with a script of texts or an engine; keywords change the rollout section."""

    def run(task: Task, script: list[str] | TokenEngine, on: ChatLayout = layout, **changes: Any) -> Rollout:
        engine = ScriptedEngine(on, script) if isinstance(script, list) else script
        settings = RolloutSettings(params.rollout.model_copy(update=ROOM | changes), params.reward, 0)
        return asyncio.run(unfold(task, 0, engine=engine, layout=on, settings=settings))

    return run
