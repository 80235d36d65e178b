"""How true the imagination is: rehearse recorded results from recorded histories, compare (method, section 7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envace.chat.history import TokenHistory
from envace.chat.layout import ChatLayout
from envace.chat.parser import parse_response
from envace.config import RolloutParams
from envace.engines.protocol import GenerationRequest, TokenEngine
from envace.files import canonical_json
from envace.rollout.asking import Ask, note_for
from envace.types import Role, Task, ToolCall


@dataclass(frozen=True, slots=True)
class Transition:
    """One recorded call with the prompt that ends where its result begins."""

    session: str
    prompt_ids: list[int]
    call: ToolCall
    recorded: Any


def transitions(task: Task, layout: ChatLayout, rollout: RolloutParams) -> list[Transition]:
    """Every recorded call of a task, each after the recorded (true) history before it, prompted as in a rollout.

    Recorded results are never shown (`grounding` none): they are what is asked for.
    """
    found: list[Transition] = []
    rollout = rollout.model_copy(update={"grounding": "none"})
    history = TokenHistory(layout, rollout.keep_reasoning, rollout.role_prompts)
    for turn in task.turns:
        if turn.turn_index == 0:
            history.open(task)
        else:
            history.user(turn.user_message)
        for step in turn.reference_steps:
            history.act(layout.encode_output(layout.written(step.reply, step.tool_calls)), [])
            for position, (call, result) in enumerate(zip(step.tool_calls, step.tool_results, strict=True)):
                ask = Ask(turn.turn_index, tuple(step.tool_calls), position, sees_results=True)
                prompt = history.rehearse_prompt(note_for(rollout, task, ask), with_results=True)
                found.append(Transition(f"{task.task_id}", prompt, call, json.loads(result.content)))
                history.result(result.content)
    return found


async def measure_fidelity(
    tasks: Sequence[Task], *, engine: TokenEngine, layout: ChatLayout, rollout: RolloutParams
) -> dict[str, float | int | None]:
    """Greedy rehearsals of all recorded transitions against the recorded results.

    too_long: transitions left out because their prompt has more than `rollout.max_prompt_tokens`. Of the others:
    parses: share that are JSON. exact: share that are equal. key_f1: F1 of the key sets. leaf_f1: F1 of (path, value)
    leaves. error_agreement: share that agree whether it is an error. error_recall: share of recorded errors that are
    rehearsed as errors (None where none is recorded); apart, since an optimistic rehearser hides in the agreement.
    """
    found = [c for task in tasks for c in transitions(task, layout, rollout)]
    cases = [c for c in found if len(c.prompt_ids) <= rollout.max_prompt_tokens]
    limit = rollout.max_rehearse_tokens
    requests = [GenerationRequest(c.session, c.prompt_ids, limit, 0.0, 1.0, seed=0, role=Role.REHEARSE) for c in cases]
    sampled = await asyncio.gather(*(engine.generate(r) for r in requests))
    texts = [layout.text(s.token_ids) if layout.finished(s.token_ids) else "" for s in sampled]
    figures = compare([parse_response(t) for t in texts], [c.recorded for c in cases])
    return figures | {"too_long": len(found) - len(cases)}


def compare(rehearsed: Sequence[Any | None], recorded: Sequence[Any]) -> dict[str, float | int | None]:
    """The figures of `measure_fidelity` for parsed responses (None: did not parse)."""
    pairs = list(zip(rehearsed, recorded, strict=True))
    errors = [r for r, truth in pairs if _is_error(truth)]
    return {
        "count": len(pairs),
        "parses": _share([r is not None for r, _ in pairs]),
        "exact": _share([r is not None and canonical_json(r) == canonical_json(truth) for r, truth in pairs]),
        "key_f1": _share([_f1(_keys(r), _keys(truth)) if r is not None else 0.0 for r, truth in pairs]),
        "leaf_f1": _share([_f1(_leaves(r), _leaves(truth)) for r, truth in pairs]),
        "error_agreement": _share([r is not None and _is_error(r) == _is_error(truth) for r, truth in pairs]),
        "error_recall": _share([_is_error(r) for r in errors]),
        "recorded_errors": len(errors),
        "distinct": len({json.dumps(r, sort_keys=True) for r, _ in pairs if r is not None}),
    }


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and "error" in value


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _leaves(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict) and value:
        return {leaf for k, v in value.items() for leaf in _leaves(v, f"{path}/{k}")}
    if isinstance(value, list) and value:
        return {leaf for i, v in enumerate(value) for leaf in _leaves(v, f"{path}/{i}")}
    return set() if value is None and not path else {f"{path}={json.dumps(value)}"}


def _f1(found: set[str], wanted: set[str]) -> float:
    if not found and not wanted:
        return 1.0
    return 2 * len(found & wanted) / (len(found) + len(wanted))


def _share(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None
