"""Unfolds the reference of a sample task, as a perfect policy would write it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from envace.chat.layout import ChatLayout, render_calls
from envace.config import Params
from envace.engines.scripted import ScriptedEngine
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, Task


@pytest.fixture(scope="session")
def make_rollout(layout: ChatLayout, params: Params) -> Callable[[Task], Rollout]:
    """The rollout of a policy that writes a task's reference, results included."""
    roomy = {"max_prompt_tokens": 1500, "max_act_tokens": 200, "max_rehearse_tokens": 100}
    settings = RolloutSettings(params.rollout.model_copy(update=roomy), params.reward, seed=0)

    def make(task: Task) -> Rollout:
        script = []
        for turn in task.turns:
            for step in turn.reference_steps:
                script.append(step.reply + render_calls(step.tool_calls))
                script += [r.content for r in step.tool_results]
        engine = ScriptedEngine(layout, script)
        return asyncio.run(unfold(task, 0, engine=engine, layout=layout, settings=settings))

    return make
