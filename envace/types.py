"""The words of the method as types: tasks as they are stored, and rollouts as they are unfolded. No torch here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from envace.files import canonical_json


class Role(StrEnum):
    """Which of its two parts the policy plays in one generation (paper, section 3)."""

    ACT = "act"
    REHEARSE = "rehearse"


class StopReason(StrEnum):
    """Why a rollout ended. Always recorded."""

    COMPLETED = "completed"
    GATE_FAILED = "gate_failed"
    MAX_OUTPUTS = "max_outputs"
    CONTEXT_OVERFLOW = "context_overflow"
    OUTPUT_TRUNCATED = "output_truncated"
    INVALID_CALL = "invalid_call"
    INVALID_REHEARSAL = "invalid_rehearsal"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    ENGINE_FAILURE = "engine_failure"
    CANCELLED = "cancelled"

    @property
    def scorable(self) -> bool:
        """False where the infrastructure ended the rollout: such a rollout has no reward, never 0."""
        return self not in (StopReason.JUDGE_UNAVAILABLE, StopReason.ENGINE_FAILURE, StopReason.CANCELLED)


class Verdict(StrEnum):
    """A judge's answer for one criterion."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(_Record):
    """One call of one tool. `arguments` is JSON text of an object, keys in the order in which they were written."""

    tool_name: str
    arguments: str
    call_id: str = ""

    def parsed(self) -> dict[str, Any]:
        """The arguments as a dict."""
        return json.loads(self.arguments)

    @property
    def canonical(self) -> str:
        """Equal for two calls of the same tool with equal arguments, whatever their order of keys."""
        return canonical_json([self.tool_name, self.parsed()])


class ToolResult(_Record):
    """The recorded answer to one call, verbatim."""

    call_id: str
    content: str
    is_error: bool


class ToolSpec(_Record):
    """One tool a task offers. `parameters_schema` is JSON text, keys in their source order (they reach the prompt)."""

    name: str
    description: str
    parameters_schema: str
    schema_sha256: str

    def openai(self) -> dict[str, Any]:
        """The tool in the OpenAI function wrapper that chat templates take."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": json.loads(self.parameters_schema),
        }
        return {"type": "function", "function": function}


class Step(_Record):
    """One reference output of the assistant with its recorded results.

    `content_frame` is empty unless the raw content had odd white space around its think block (envace.data.content).
    """

    step_index: int
    reasoning: str
    reply: str
    tool_calls: list[ToolCall]
    tool_results: list[ToolResult]
    content_frame: str = ""


class Turn(_Record):
    """One user message and the reference steps up to the next one."""

    turn_index: int
    user_message: str
    reference_steps: list[Step]


class Evidence(_Record):
    """Where in the reference conversation a criterion comes from."""

    turn: int
    step: int
    source: str
    snippet: str


class Criterion(_Record):
    """One checklist item of one turn. `criterion_id` is like "t0.c3"; weights sum to 1 in a turn."""

    criterion_id: str
    turn_index: int
    target: Literal["tool_call", "tool_result", "reasoning", "reply", "user"]
    question: str
    pass_condition: str
    failure_examples: list[str]
    evidence: list[Evidence]
    prerequisite_ids: list[str]
    weight: float
    source_weight: float
    is_gating: bool


class Rubric(_Record):
    """All criteria of one variant of a task's checklist."""

    variant_index: int
    criteria: list[Criterion]


class TurnOutcome(_Record):
    """What code can check about one turn (method, section 3, `verifiable`)."""

    required_calls: list[ToolCall]
    ordered: bool = True
    forbidden_tools: list[str] = []
    required_facts: list[str]


class Outcome(_Record):
    """The verifiable outcome of a task, a turn at a time."""

    turns: list[TurnOutcome]


class WorldRef(_Record):
    """Which executable world a sample task belongs to (ours, optional)."""

    domain: str
    seed: int


class Task(_Record):
    """One conversation to carry out: the canonical record of the data specification, section 5."""

    task_id: str
    content_sha256: str
    split: str
    system_prompt: str | None
    tools: list[ToolSpec]
    turns: list[Turn]
    rubrics: list[Rubric]
    outcome: Outcome | None
    world: WorldRef | None
    flags: list[str]
    provenance: str

    def tool(self, name: str) -> ToolSpec | None:
        """The tool called `name`, or None."""
        return next((t for t in self.tools if t.name == name), None)


@dataclass(slots=True)
class Output:
    """One generation under one role: a training row.

    `prompt_ids` and `token_ids` are exactly what the engine saw and sampled; every token of `token_ids` is the
    policy's own, so its mask is 1 throughout. `log_probs` has one natural-log probability for each sampled token.
    `shared_tokens` counts the leading tokens of the prompt that an earlier output of the rollout had computed.

    Over a chat endpoint there is only text: ids and log-probs are empty, and `engine_fields` holds the usage that the
    endpoint reports. Such rollouts are for test-time rehearsal and are never trained on.
    """

    role: Role
    turn_index: int
    prompt_ids: list[int]
    token_ids: list[int]
    log_probs: list[float]
    text: str
    call: ToolCall | None = None
    engine_fields: dict[str, Any] = field(default_factory=dict)
    shared_tokens: int = 0

    @property
    def is_trainable(self) -> bool:
        """Whether what was sampled is known token by token."""
        return bool(self.token_ids)


@dataclass(slots=True)
class Observation:
    """What answered one call: the rehearse role, the validating code, or a true environment.

    `call` is None where code answers a block that is no call at all.
    """

    call: ToolCall | None
    content: str
    source: Literal["rehearsed", "code", "environment"]


@dataclass(slots=True)
class StepRecord:
    """One finished act output as text, with what answered its calls.

    `calls` are those that were sent, in order: none where the output could not be parsed, and not those behind a call
    whose answer ended the rollout. `observations` has one entry for each call that was answered, in the same order.
    """

    reasoning: str
    reply: str
    calls: list[ToolCall] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)


@dataclass(slots=True)
class TurnRecord:
    """What happened in one turn of a rollout, in order. `reply` is the one that ended the turn, None before it."""

    turn_index: int
    user_message: str
    steps: list[StepRecord] = field(default_factory=list)
    reply: str | None = None
    score: float = 0.0
    satisfied: bool = False
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    unknown_causes: dict[str, str] = field(default_factory=dict)  # by criterion
    judge_work: dict[str, float] = field(default_factory=dict)  # what was asked, and the seconds it took

    @property
    def calls(self) -> list[ToolCall]:
        """Every call sent in the turn, refused ones included."""
        return [call for step in self.steps for call in step.calls]

    @property
    def observations(self) -> list[Observation]:
        """Everything that answered a call, or a broken call block, in the turn."""
        return [observation for step in self.steps for observation in step.observations]


@dataclass(slots=True)
class Rollout:
    """One unfolded attempt at a task. `reward` is None when it cannot be scored, never 0 in its place."""

    task_id: str
    rollout_index: int
    outputs: list[Output] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    stop_reason: StopReason | None = None
    reward: float | None = None
    success: bool = False
    error: str = ""
    not_finite: bool = False  # it ended because the engine gave a number that is not finite

    def count(self, role: Role) -> int:
        """Number of outputs of one role."""
        return sum(o.role is role for o in self.outputs)
