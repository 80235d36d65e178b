"""What the rehearse role is told at the end of its prompt: the instruction, and the recorded results it may see."""

from __future__ import annotations

from dataclasses import dataclass

from envace.config import RolloutParams
from envace.prompts import load_prompt
from envace.types import Task, ToolCall


@dataclass(frozen=True, slots=True)
class Ask:
    """Which call the rehearse role is to answer: number `position` (from 0) of the `calls` of the latest act output.

    `sees_results`: the results of the calls before it are shown (`parallel_calls: sequential`).
    """

    turn_index: int
    calls: tuple[ToolCall, ...]
    position: int
    sees_results: bool

    @property
    def call(self) -> ToolCall:
        """The call to answer."""
        return self.calls[self.position]


def note_for(params: RolloutParams, task: Task, ask: Ask) -> str | None:
    """What a token prompt says at its end (`rollout.role_prompts`): the instruction, or recorded results if any."""
    if params.role_prompts == "instructions":
        return instruction(params, task, ask)
    return recorded_note(params, task, ask.turn_index)


def instruction(params: RolloutParams, task: Task, ask: Ask) -> str:
    """The whole instruction. It names the call by its number, so that no sampled text is written or encoded again."""
    recorded = recorded_note(params, task, ask.turn_index)
    return load_prompt("rehearse").substitute(
        recorded=f"\n{recorded}\n" if recorded else "", position=str(ask.position + 1), count=str(len(ask.calls))
    )


def recorded_note(params: RolloutParams, task: Task, turn_index: int) -> str | None:
    """The recorded results that `rollout.grounding` lets a rehearsal in this turn see, or None without any."""
    shown = shown_results(params, task, turn_index)
    return load_prompt("rehearse_recorded").substitute(recorded="\n".join(shown)) if shown else None


def shown_results(params: RolloutParams, task: Task, turn_index: int) -> list[str]:
    """Recorded calls with their results, one a line: none; those of earlier turns (`past`); or all (`reference`).

    `reference` is what the paper's public code does. It leaks the future: the rehearse role sees results that the
    conversation has not reached, and the answers to the very calls that are to be learned.
    """
    if params.grounding == "none":
        return []
    turns = [t for t in task.turns if params.grounding == "reference" or t.turn_index < turn_index]
    lines: list[str] = []
    for step in (step for turn in turns for step in turn.reference_steps):
        answered = zip(step.tool_calls, step.tool_results, strict=True)
        lines += [f"{call.tool_name} {call.arguments} -> {result.content}" for call, result in answered]
    return lines
