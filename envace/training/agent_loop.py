"""verl's agent loop around the shared act–rehearse loop: one training row for each generation of either role."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from envace.chat.layout import ChatLayout
from envace.data.sample.environment import SampleEnvironment
from envace.engines.protocol import Generation, GenerationRequest
from envace.rollout.loop import RolloutSettings, unfold
from envace.rollout.records import rollout_row
from envace.training.settings import RunSettings
from envace.types import Rollout, Task


class VerlEngine:
    """verl's rollout servers as a TokenEngine."""

    def __init__(self, server_manager: Any) -> None:
        self._servers = server_manager

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one output on the server that holds this session's prefix."""
        sampling = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "top_k": -1,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "logprobs": True,
        }
        output = await self._servers.generate(request.session, prompt_ids=request.prompt_ids, sampling_params=sampling)
        return Generation(list(output.token_ids), list(output.log_probs or []), dict(output.extra_fields))


class EnvaceAgentLoop(AgentLoopBase):
    """Unfolds one rollout of one task. `settings` is the JSON text of `RunSettings`."""

    def __init__(self, *args: Any, settings: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = _settings(settings)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """All outputs of one rollout, each with its label; the last one carries the rollout's record.

        verl's own `sampling_params` are not used: each role has its own sampling in the settings.
        """
        info, settings = row["extra_info"], self._settings
        task = Task.model_validate_json(info["task"])
        step, index, training = int(row["global_steps"]), int(row["session_id"]), info["phase"] == "train"
        rollout = await unfold(
            task,
            index,
            engine=VerlEngine(self.server_manager),
            layout=_layout(self.tokenizer),
            settings=RolloutSettings(
                rollout=settings.rollout if training else settings.validation_rollout,
                reward=settings.reward,
                seed=f"{settings.seed}/{info['phase']}/{step if training else 'fixed'}",
                environment=None if training or task.world is None else _environment(task.world.seed),
            ),
        )
        record = json.dumps(rollout_row(rollout, step=step, phase=info["phase"]))
        return _as_rows(rollout, record, int(info["index"]))


def _as_rows(rollout: Rollout, record: str, task_index: int) -> list[AgentLoopOutput]:
    scorable = rollout.reward is not None
    last = len(rollout.outputs) - 1
    rows = []
    for position, output in enumerate(rollout.outputs):
        fields = {
            **output.engine_fields,
            "role": output.role.value,
            "scorable": scorable,
            "order": [task_index, rollout.rollout_index, position],
            "record": record if position == last else "",
            "reward_extra_info": {"success": float(rollout.success), "record": record if position == last else ""},
        }
        rows.append(
            AgentLoopOutput(
                prompt_ids=output.prompt_ids,
                response_ids=output.token_ids,
                response_mask=[int(scorable)] * len(output.token_ids),
                response_logprobs=output.log_probs,
                reward_score=rollout.reward if rollout.reward is not None else 0.0,
                num_turns=len(rollout.turns),
                metrics=AgentLoopMetrics(),
                extra_fields=fields,
            )
        )
    return rows


@lru_cache(maxsize=2)
def _settings(text: str) -> RunSettings:
    return RunSettings.model_validate_json(text)


@lru_cache(maxsize=2)
def _layout(tokenizer: Any) -> ChatLayout:
    return ChatLayout(tokenizer)


@lru_cache(maxsize=8)
def _environment(seed: int) -> SampleEnvironment:
    return SampleEnvironment(seed)
