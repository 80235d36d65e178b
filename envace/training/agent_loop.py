"""verl's agent loop around the shared act–rehearse loop: its outputs become training rows with labels."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from envace.chat.layout import ChatLayout
from envace.config import EndpointParams, JudgeParams
from envace.data.sample.environment import SampleEnvironment
from envace.endpoints.client import ChatClient
from envace.engines.protocol import Generation, GenerationRequest
from envace.rewards.build import build_judge
from envace.rewards.kind import reward_kind
from envace.rewards.protocol import BuiltJudge
from envace.rollout.loop import RolloutSettings, unfold
from envace.rollout.records import rollout_row
from envace.rollout.simulated_conversation import unfold_simulated
from envace.training.labels import PADDING_ROLE
from envace.training.row_merging import chains, joined
from envace.training.settings import RunSettings
from envace.training.stopwatch import FIELD, Stopwatch
from envace.types import Output, Role, Rollout, Task


class VerlEngine:
    """verl's rollout servers as a TokenEngine. `by_role`: the servers are two sets, one for each role's policy."""

    def __init__(self, server_manager: Any, by_role: bool = False) -> None:
        self._servers, self._by_role = server_manager, by_role

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
        servers = self._servers.of(request.role) if self._by_role else self._servers
        output = await servers.generate(request.session, prompt_ids=request.prompt_ids, sampling_params=sampling)
        return Generation(list(output.token_ids), list(output.log_probs or []), dict(output.extra_fields))


class EnvaceAgentLoop(AgentLoopBase):
    """Unfolds one rollout of one task. `settings` is the JSON text of `RunSettings`."""

    def __init__(self, *args: Any, settings: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = _settings(settings)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """All outputs that the policy sampled, each with its label; the last one carries the rollout's record.

        verl's own `sampling_params` are not used: each role has its own sampling in the settings.
        """
        info, settings = row["extra_info"], self._settings
        task = Task.model_validate_json(info["task"])
        step, index, training = int(row["global_steps"]), int(row["session_id"]), info["phase"] == "train"
        watch = Stopwatch()
        parts: dict[str, Any] = {
            "engine": VerlEngine(self.server_manager, by_role=settings.method == "per_role"),
            "layout": _layout(self.tokenizer),
            "settings": RolloutSettings(
                rollout=settings.rollout if training else settings.validation_rollout,
                reward=settings.reward,
                seed=f"{settings.seed}/{info['phase']}/{step if training else 'fixed'}",
                environment=None if training or task.world is None else _environment(task.world.seed),
                judge=watch.judged(_judge(settings.reward.judge.model_dump_json()))
                if reward_kind(settings.reward, task) == "checklist"
                else None,
            ),
        }
        if settings.simulator:
            simulator = _simulator(settings.simulator.endpoint.model_dump_json())
            rollout = await unfold_simulated(task, index, simulator=simulator, **parts)
        else:
            rollout = await unfold(task, index, **parts)
        record = json.dumps(rollout_row(rollout, step=step, phase=info["phase"]))
        if any(output.is_trainable for output in rollout.outputs):
            rows = _as_rows(rollout, record, int(info["index"]), settings.merge_rows)
        else:
            rows = [_stand_in(rollout, record, int(info["index"]), _layout(self.tokenizer).end_id, step)]
        seconds = watch.seconds()
        for made in rows:
            made.extra_fields[FIELD] = seconds
        return rows


def _as_rows(rollout: Rollout, record: str, task_index: int, merge: bool) -> list[AgentLoopOutput]:
    sampled = [(i, output) for i, output in enumerate(rollout.outputs) if output.is_trainable]  # not a simulator's
    outputs = [output for _, output in sampled]
    rows = chains(outputs) if merge else [[i] for i in range(len(outputs))]
    return [
        _row(
            rollout,
            [outputs[i] for i in row],
            [outputs[i].role.value for i in row],
            record if row is rows[-1] else "",
            [task_index, rollout.rollout_index, sampled[row[0]][0]],
        )
        for row in rows
    ]


def _stand_in(rollout: Rollout, record: str, task_index: int, end_id: int, step: int) -> AgentLoopOutput:
    """The one row of a rollout that ended before its first output: it carries the record and is never trained on.

    verl drops a rollout without rows, and with it every trace that it was tried.
    """
    version = {"min_global_steps": step - 1, "max_global_steps": step - 1}
    nothing = Output(Role.ACT, 0, [end_id], [end_id], [0.0], "", engine_fields=version)
    return _row(rollout, [nothing], [PADDING_ROLE], record, [task_index, rollout.rollout_index, 0])


def _row(rollout: Rollout, outputs: list[Output], roles: list[str], record: str, order: list[int]) -> AgentLoopOutput:
    scorable = rollout.reward is not None
    response, mask, log_probs, spans = joined(outputs, scorable and roles[0] != PADDING_ROLE)
    fields = {
        **outputs[-1].engine_fields,
        **{k: v for k, v in outputs[0].engine_fields.items() if k == "min_global_steps"},
        "role": roles[0],
        "spans": [[role, *span] for role, span in zip(roles, spans, strict=True)],
        "scorable": scorable,
        "order": order,
        "record": record,
        "reward_extra_info": {"success": float(rollout.success), "record": record},
    }
    return AgentLoopOutput(
        prompt_ids=outputs[0].prompt_ids,
        response_ids=response,
        response_mask=mask,
        response_logprobs=log_probs,
        reward_score=rollout.reward if rollout.reward is not None else 0.0,
        num_turns=len(rollout.turns),
        metrics=AgentLoopMetrics(),
        extra_fields=fields,
    )


@lru_cache(maxsize=2)
def _settings(text: str) -> RunSettings:
    return RunSettings.model_validate_json(text)


@lru_cache(maxsize=2)
def _layout(tokenizer: Any) -> ChatLayout:
    return ChatLayout(tokenizer)


@lru_cache(maxsize=1)
def _judge(params: str) -> BuiltJudge:
    """One judge a process, so that its verdicts, its connections and its circuit breaker are shared."""
    return build_judge(JudgeParams.model_validate_json(params))


@lru_cache(maxsize=1)
def _simulator(params: str) -> ChatClient:
    """Likewise one simulator."""
    return ChatClient(EndpointParams.model_validate_json(params))


@lru_cache(maxsize=8)
def _environment(seed: int) -> SampleEnvironment:
    return SampleEnvironment(seed)
