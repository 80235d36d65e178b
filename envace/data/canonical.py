"""A validated raw row as a Task: the one shape that everything after the data stages reads."""

from __future__ import annotations

from typing import Any

from envace.data.canonical_rubric import rubrics
from envace.data.content import SplitContent, render_content, split_content
from envace.data.ids import safe_task_id
from envace.data.results import is_error_result
from envace.errors import DataError
from envace.files import canonical_json, compact_json, sha256_text
from envace.types import Outcome, Step, Task, ToolCall, ToolResult, ToolSpec, Turn, TurnOutcome, WorldRef

Row = dict[str, Any]


def to_task(row: Row, split: str, flags: list[str], provenance: str) -> Task:
    """The task of one validated row. `provenance` says in words which file and row it comes from.

    Raises DataError where the optional `outcome` or `world` has not the shape that `docs/data.md` shows.
    """
    messages = row["messages"]
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    turns = _turns(messages)
    return Task(
        task_id=safe_task_id(row["uuid"]),
        content_sha256=sha256_text(canonical_json([messages, row["tools"]])),
        split=split,
        system_prompt=system,
        tools=[_tool(tool["function"]) for tool in row["tools"]],
        turns=turns,
        rubrics=rubrics(row["checklists"]),
        outcome=_outcome(row.get("outcome"), len(turns), provenance),
        world=_world(row.get("world"), provenance),
        flags=flags,
        provenance=provenance,
    )


def user_texts(row: Row) -> list[str]:
    """What the user says, in order: the identity of a conversation for splits and leaks."""
    return [message["content"] for message in row["messages"] if message["role"] == "user"]


def raw_contents(task: Task) -> list[str]:
    """The raw contents of all messages of a task, in order: what ingest was given, character by character."""
    contents = [] if task.system_prompt is None else [task.system_prompt]
    for turn in task.turns:
        contents.append(turn.user_message)
        for step in turn.reference_steps:
            contents.append(render_content(SplitContent(step.reasoning, step.reply, step.content_frame)))
            contents += [result.content for result in step.tool_results]
    return contents


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[tuple[str, list[Step]]] = []
    for index, message in enumerate(messages):
        if message["role"] == "user":
            turns.append((message["content"], []))
        elif message["role"] == "assistant":
            steps = turns[-1][1]
            steps.append(_step(len(steps), message, messages[index + 1 : index + 1 + len(message["tool_calls"])]))
    return [Turn(turn_index=i, user_message=said, reference_steps=steps) for i, (said, steps) in enumerate(turns)]


def _step(index: int, message: dict[str, Any], results: list[dict[str, Any]]) -> Step:
    split = split_content(message["content"])
    # the raw schema has no ids on results, and may have none or equal ones on calls: the position is what counts
    ids = [call.get("id") or "" for call in message["tool_calls"]]
    if len(set(ids)) < len(ids) or "" in ids:
        ids = [f"call_{number}" for number in range(len(ids))]
    calls = [
        ToolCall(tool_name=call["function"]["name"], arguments=call["function"]["arguments"], call_id=call_id)
        for call, call_id in zip(message["tool_calls"], ids, strict=True)
    ]
    return Step(
        step_index=index,
        reasoning=split.reasoning,
        reply=split.reply,
        tool_calls=calls,
        tool_results=[
            ToolResult(call_id=call_id, content=result["content"], is_error=is_error_result(result["content"]))
            for result, call_id in zip(results, ids, strict=True)
        ],
        content_frame=split.frame,
    )


def _tool(function: dict[str, Any]) -> ToolSpec:
    text = compact_json(function.get("parameters", {}))
    description = function.get("description")
    return ToolSpec(
        name=function["name"],
        description=description if isinstance(description, str) else "",
        parameters_schema=text,
        schema_sha256=sha256_text(text),
    )


def _outcome(raw: Any, turns: int, where: str) -> Outcome | None:
    if raw is None:
        return None
    try:
        outcome = Outcome(turns=[_turn_outcome(turn) for turn in raw["turns"]])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: outcome has not the shape of docs/data.md: {_brief(error)}") from None
    if len(outcome.turns) != turns:
        raise DataError(f"{where}: outcome has {len(outcome.turns)} turns, the conversation {turns}")
    return outcome


def _turn_outcome(raw: dict[str, Any]) -> TurnOutcome:
    calls = [ToolCall(tool_name=c["name"], arguments=compact_json(dict(c["arguments"]))) for c in raw["required_calls"]]
    return TurnOutcome(
        required_calls=calls,
        ordered=raw.get("ordered", True),
        forbidden_tools=raw.get("forbidden_tools", []),
        required_facts=raw["required_facts"],
    )


def _world(raw: Any, where: str) -> WorldRef | None:
    try:
        return None if raw is None else WorldRef.model_validate(raw)
    except ValueError as error:
        raise DataError(f"{where}: world has not the shape of docs/data.md: {_brief(error)}") from None


def _brief(error: Exception) -> str:
    words = f"missing key {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(words.split())[:200]
