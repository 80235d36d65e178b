"""A rollout up to one act step as the lines that a judge reads: escaped, bounded, the same for all criteria."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envace.rewards.escaping import json_line
from envace.types import StepRecord, Task, TurnRecord

_SHORTEST_EXCERPT = 256
_CUT_LINE = {"left_out": "lines of the middle of the conversation"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One text of the conversation. `head` are the fields that code wrote, `text` is the untrusted part."""

    head: dict[str, str | int]
    text: str

    def line(self, longest: int | None) -> str:
        """As one line; a text of more than `longest` characters keeps its beginning and its end, 3 to 1."""
        if longest is None or len(self.text) <= longest:
            return json_line({**self.head, "text": self.text})
        begin, end = longest - longest // 4, longest // 4
        cut = {"text": self.text[:begin], "left_out_characters": len(self.text) - longest, "then": self.text[-end:]}
        return json_line({**self.head, **cut})


def render_transcript(
    task: Task, turns: Sequence[TurnRecord], step_index: int, *, show_reasoning: bool, max_chars: int
) -> str:
    """The conversation from its system prompt to step `step_index` of the last turn, that step's results included.

    One JSON object a line: what code says (turn, step, whose text it is), then the text. No text can hold a line break,
    an angle bracket or an unescaped quote, so none can end the block or look like another line. Of reasoning only that
    of the last turn is shown, and only where `show_reasoning`. A longer transcript is the longer text of a shorter one,
    as long as neither is cut, so a server computes a common prefix once.

    Above `max_chars` characters, long texts are cut to their head and tail, all to the same length, halved until the
    block fits; where 256 characters a text are still too many, whole lines are left out between a head of a quarter
    and a tail of three quarters. Every cut is marked by a field or a line that code wrote.
    """
    entries = list(_entries(task, turns, step_index, show_reasoning))
    fits = sum(len(entry.text) for entry in entries) <= max_chars
    longest = None if fits else max(_SHORTEST_EXCERPT, max_chars // 2)
    while True:
        lines = [entry.line(longest) for entry in entries]
        if sum(map(len, lines)) + len(lines) <= max_chars:
            return "\n".join(lines)
        if longest is not None and longest <= _SHORTEST_EXCERPT:
            return "\n".join(_without_middle(lines, max_chars))
        longest = max(_SHORTEST_EXCERPT, (longest or max_chars) // 2)


def _entries(task: Task, turns: Sequence[TurnRecord], step_index: int, show_reasoning: bool) -> Iterator[_Entry]:
    if task.system_prompt:
        yield _Entry({"from": "system"}, task.system_prompt)
    for turn in turns:
        is_last = turn is turns[-1]
        yield _Entry({"turn": turn.turn_index, "from": "user"}, turn.user_message)
        for index, step in enumerate(turn.steps[: step_index + 1] if is_last else turn.steps):
            yield from _step(step, {"turn": turn.turn_index, "step": index}, show_reasoning and is_last)


def _step(step: StepRecord, place: dict[str, str | int], show_reasoning: bool) -> Iterator[_Entry]:
    if show_reasoning and step.reasoning.strip():
        yield _Entry({**place, "from": "assistant.reasoning"}, step.reasoning)
    if step.reply.strip():
        yield _Entry({**place, "from": "assistant.reply"}, step.reply)
    for call in step.calls:
        yield _Entry({**place, "from": "assistant.tool_call", "tool": call.tool_name}, call.arguments)
    for observation in step.observations:
        tool = {} if observation.call is None else {"tool": observation.call.tool_name}
        yield _Entry({**place, "from": "tool_result", **tool}, observation.content)


def _without_middle(lines: list[str], max_chars: int) -> list[str]:
    """Whole lines from the front and from the back, with a line in between that says so."""
    marker = json_line(_CUT_LINE)
    room = max_chars - len(marker) - 1
    tail = _fitting(lines[::-1], room - room // 4)[::-1]
    head = _fitting(lines[: len(lines) - len(tail)], room // 4)
    return [*head, marker, *tail]


def _fitting(lines: list[str], room: int) -> list[str]:
    taken = 0
    for number, line in enumerate(lines):
        taken += len(line) + 1
        if taken > room:
            return lines[:number]
    return lines
