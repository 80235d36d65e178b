"""Runs scripted rollouts and keeps what the engine saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from envace.chat.layout import ChatLayout, render_calls
from envace.config import Params
from envace.engines.protocol import Generation, GenerationRequest, TokenEngine
from envace.engines.scripted import ScriptedEngine
from envace.files import compact_json
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, Task, ToolCall

ROOMY = {"max_prompt_tokens": 1500, "max_act_tokens": 400, "max_rehearse_tokens": 100, "max_outputs": 12}


@dataclass
class RecordingEngine:
    """Passes requests on and keeps each with its answer, in order."""

    inner: TokenEngine
    seen: list[tuple[GenerationRequest, Generation]] = field(default_factory=list)

    async def generate(self, request: GenerationRequest) -> Generation:
        generation = await self.inner.generate(request)
        self.seen.append((request, generation))
        return generation


def written(*calls: tuple[str, dict[str, Any]]) -> str:
    """Calls as the policy writes them."""
    return render_calls([ToolCall(tool_name=name, arguments=compact_json(a)) for name, a in calls])


@pytest.fixture(scope="session")
def write() -> Callable[..., str]:
    """Writes calls, each (tool name, arguments), as the policy does."""
    return written


@pytest.fixture(scope="session")
def settings_with(params: Params) -> Callable[..., RolloutSettings]:
    """Makes roomy settings; keywords change the rollout section, those of `make` are the settings' own.

    `reward` holds changes of the reward section, or is None for rollouts that are not scored.
    """
    nothing: dict[str, Any] = {}

    def make(
        *,
        environment: Any = None,
        seed: int | str = 0,
        judge: Any = None,
        reward: dict[str, Any] | None = nothing,
        **changes: Any,
    ) -> RolloutSettings:
        rollout = params.rollout.model_copy(update=ROOMY | changes)
        scoring = None if reward is None else params.reward.model_copy(update=reward)
        return RolloutSettings(rollout, scoring, seed, environment, judge)

    return make


@pytest.fixture(scope="session")
def play(layout: ChatLayout, settings_with: Callable[..., RolloutSettings]) -> Callable[..., Rollout]:
    """Unfolds a task with a script of texts, or with the engine given; `on` is another layout than the tiny policy's.

    Further keywords as of `settings_with`.
    """

    def run(task: Task, script: list[str] | TokenEngine, *, on: ChatLayout = layout, **changes: Any) -> Rollout:
        engine = ScriptedEngine(on, script) if isinstance(script, list) else script
        return asyncio.run(unfold(task, 0, engine=engine, layout=on, settings=settings_with(**changes)))

    return run


@pytest.fixture
def recording(layout: ChatLayout) -> Callable[[list[str]], RecordingEngine]:
    """Makes a scripted engine that keeps what it saw."""
    return lambda script: RecordingEngine(ScriptedEngine(layout, script))
