"""The server's prompts and answers are those of the act role and the engine in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.engines.protocol import GenerationRequest
from envace.serving.service import ChatService
from envace.types import Task, ToolCall, ToolResult

Post = Callable[..., tuple[int, Any]]


def conversation(task: Task) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first turn of a task with its reference steps, as messages, and its tools."""
    turn = task.turns[0]
    system = [{"role": "system", "content": task.system_prompt}] if task.system_prompt is not None else []
    messages: list[dict[str, Any]] = [*system, {"role": "user", "content": turn.user_message}]
    for step in turn.reference_steps[:-1]:
        calls = [_call(c) for c in step.tool_calls]
        messages.append({"role": "assistant", "content": step.reply or None, "tool_calls": calls})
        messages += [_result(r) for r in step.tool_results]
    return messages, [t.openai() for t in task.tools]


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool_name, "arguments": call.arguments},
    }


def _result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.content}


def test_the_prompt_is_that_of_the_act_role(scripted: Any, post: Post, sample_tasks: list[Task]) -> None:
    checked = 0
    for task in sample_tasks[:40]:
        service, engine = scripted("Done.")
        service.max_length = 2000
        layout, turn = service._layout, task.turns[0]
        messages, tools = conversation(task)
        status, _ = post(service, {"model": "policy", "messages": messages, "tools": tools, "max_tokens": 9})
        wanted = layout.opening(task)
        for step in turn.reference_steps[:-1]:
            wanted = wanted + layout.act_message(layout.encode_output(layout.written(step.reply, step.tool_calls)))
            wanted = wanted + layout.results([r.content for r in step.tool_results])
        assert status == 200 and engine.requests[0].prompt_ids == wanted + layout.act_header
        checked += len(turn.reference_steps) > 1
    assert checked > 10


def test_content_in_parts_is_the_same_as_text(scripted: Any, post: Post, ask: Any) -> None:
    service, engine = scripted("yes")
    parts = [{"type": "text", "text": "What is the "}, {"type": "text", "text": "weather in Oslo?"}]
    post(service, ask())
    post(service, ask() | {"messages": [{"role": "user", "content": parts}]})
    assert engine.requests[0].prompt_ids == engine.requests[1].prompt_ids


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.0}, {"temperature": 1.0, "seed": 5}, {"top_p": 0.8, "seed": -3}]
)
def test_the_answer_is_that_of_the_engine(
    random_service: ChatService, post: Post, ask: Any, sampling: dict[str, Any]
) -> None:
    status, body = post(random_service, ask(**sampling))
    prompt = random_service._layout.conversation(ask()["messages"])
    given = {"temperature": 1.0, "top_p": 1.0, "seed": 0} | sampling
    request = GenerationRequest("in process", prompt, 60, **given)
    generation = asyncio.run(random_service._engine.generate(request))
    text = random_service._layout.text(generation.token_ids).strip()
    assert status == 200 and body["choices"][0]["message"]["content"] == text
    assert body["usage"]["prompt_tokens"] == len(prompt)
    assert body["usage"]["completion_tokens"] == len(generation.token_ids)


def test_without_a_seed_answers_differ(random_service: ChatService, post: Post, ask: Any) -> None:
    said = {post(random_service, ask())[1]["choices"][0]["message"]["content"] for _ in range(3)}
    assert len(said) == 3


def test_arguments_go_back_into_the_prompt_as_they_were_written(layout: Any) -> None:
    from envace.chat.conversation import render_conversation

    class Quoting:
        """A template that quotes text once more, as many do."""

        def render(self, messages: list[Any], tools: Any = None, generate: bool = False) -> str:
            return json.dumps([m["tool_calls"][0]["function"]["arguments"] for m in messages])

    arguments = '{"city": "Oslo"}'
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    assert render_conversation(Quoting(), [message], None) == f"[{arguments}]"
