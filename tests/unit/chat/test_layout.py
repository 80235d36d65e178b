"""Tokens in, tokens out: splicing gives the ids of rendering whole; templates that cannot be spliced are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.chat.layout import ChatLayout, render_calls
from envace.data.sample import Demonstration
from envace.data.tables import write_tables
from envace.data.task_reader import read_tasks
from envace.errors import EngineError
from envace.files import compact_json
from envace.types import Step, Task, ToolCall, ToolSpec

Message = dict[str, Any]
Maker = Any


def messages_of(task: Task) -> list[Message]:
    """The reference conversation as chat messages, calls in the OpenAI shape."""
    messages: list[Message] = []
    for turn in task.turns:
        messages.append({"role": "user", "content": turn.user_message})
        for step in turn.reference_steps:
            calls = [{"function": {"name": c.tool_name, "arguments": c.arguments}} for c in step.tool_calls]
            messages.append({"role": "assistant", "content": step.reply, "tool_calls": calls})
            messages += [{"role": "tool", "content": r.content} for r in step.tool_results]
    return messages


def spliced(layout: ChatLayout, task: Task) -> list[int]:
    """The same conversation built a segment at a time, as a rollout does."""
    ids: list[int] = []
    for turn in task.turns:
        ids += layout.opening(task) if turn.turn_index == 0 else layout.user(turn.user_message)
        for step in turn.reference_steps:
            ids += layout.act_header + layout.closed(layout.encode_output(written(step)))
            for index, result in enumerate(step.tool_results):
                if index % 2:
                    ids += layout.observation(result.content)
                else:
                    ids += layout.rehearse_header + layout.closed(layout.encode_output(result.content))
    return ids


def written(step: Step) -> str:
    return step.reply + render_calls(step.tool_calls)


def whole(tokenizer: Any, task: Task, messages: list[Message]) -> list[int]:
    system = [] if task.system_prompt is None else [{"role": "system", "content": task.system_prompt}]
    tools = [t.openai() for t in task.tools] or None
    text = tokenizer.apply_chat_template(system + messages, tools=tools, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


def test_splicing_gives_the_ids_of_rendering_whole(
    tokenizer: Any, layout: ChatLayout, sample_tasks: list[Task]
) -> None:
    for task in sample_tasks:
        for system_prompt in (None, "Be brief.\n"):
            asked = task.model_copy(update={"system_prompt": system_prompt})
            assert spliced(layout, asked) == whole(tokenizer, asked, messages_of(asked))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=3, max_size=6))
def test_splicing_holds_for_any_text(tokenizer: Any, layout: ChatLayout, make_task: Maker, texts: list[str]) -> None:
    asked, replies = texts[0], texts[1:]
    task = make_task((asked, [], []))
    ids, messages = layout.opening(task), [{"role": "user", "content": asked}]
    for reply in replies:
        ids += layout.act_header + layout.closed(layout.encode_output(reply)) + layout.observation(asked)
        ids += layout.user(reply)
        messages += [{"role": "assistant", "content": reply}, {"role": "tool", "content": asked}]
        messages.append({"role": "user", "content": reply})
    assert ids == whole(tokenizer, task, messages)


def test_prompts_end_where_the_role_begins_to_write(layout: ChatLayout, tokenizer: Any, make_task: Maker) -> None:
    task = make_task(("Hello", [], []))
    text = tokenizer.decode(layout.opening(task) + layout.act_header)
    assert text.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.decode(layout.rehearse_header) == "<|im_start|>tool\n"


def test_an_output_that_was_cut_is_told_apart_and_closed_in_the_history(layout: ChatLayout) -> None:
    ended = layout.encode_output("It is sunny.")
    cut = ended[:-1]
    assert layout.finished(ended) and not layout.finished(cut) and not layout.finished([])
    assert layout.closed(ended) == layout.closed(cut)
    assert layout.text(ended) == layout.text(cut) == "It is sunny."


def test_special_tokens_of_an_output_are_kept_for_the_parser(layout: ChatLayout) -> None:
    call = render_calls([ToolCall(tool_name="a", arguments='{"x": "Łódź"}')])
    text = f"<think>\nplan\n</think>\n{call}"
    assert layout.text(layout.encode_output(text)) == text


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages | length }}{% for m in messages %}{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}{{ m.role }}\n{% if loop.last %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}",
        "{% for m in messages if m.role != 'tool' %}{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}{{ m.role }}\n<r>{{ m.content }}</r><|im_end|>\n{% endfor %}",
    ],
)
def test_templates_that_cannot_be_spliced_are_refused(tokenizer: Any, template: str) -> None:
    other = copy.deepcopy(tokenizer)
    other.chat_template = template + "{% if add_generation_prompt %}assistant\n{% endif %}"
    with pytest.raises(EngineError, match="chat template"):
        ChatLayout(other)


def test_disjoint_tool_schemas_reach_the_prompt_byte_for_byte(tokenizer: Any, tmp_path: Path, make_task: Maker) -> None:
    schemas = [
        {"type": "object", "properties": {"b": {"type": "string", "enum": ["ü", "é"]}}, "required": ["b"]},
        {"properties": {"a": {"minimum": 0, "type": "integer", "default": None}}, "type": "object"},
        {},
    ]
    tools = [
        ToolSpec(name=f"tool_{i}", description="", parameters_schema=compact_json(s), schema_sha256=str(i))
        for i, s in enumerate(schemas)
    ]
    task = make_task(("Hello", [], [])).model_copy(update={"tools": tools})
    write_tables(tmp_path, [task])
    (stored,) = read_tasks(tmp_path / "tasks.parquet")
    other = copy.deepcopy(tokenizer)
    schema_lines = "{% for t in tools or [] %}{{ t.function.parameters | tojson }}\n{% endfor %}"
    other.chat_template = schema_lines + tokenizer.chat_template
    prompt = other.decode(ChatLayout(other).opening(stored))
    assert prompt.splitlines()[: len(schemas)] == [json.dumps(s, ensure_ascii=False) for s in schemas]
    assert stored == task


def test_tools_of_a_task_are_all_in_its_prompt(layout: ChatLayout, tokenizer: Any, sample_tasks: list[Task]) -> None:
    for task in sample_tasks[:50]:
        prompt = tokenizer.decode(layout.opening(task))
        assert [line.split("(")[0] for line in prompt.splitlines() if "(" in line] == [t.name for t in task.tools]


def test_reference_outputs_round_trip(layout: ChatLayout, demonstrations: list[Demonstration]) -> None:
    for demonstration in demonstrations:
        for turn in demonstration.act:
            for text in (turn.reply, *(render_calls(list(calls)) for calls, _ in turn.steps)):
                assert layout.text(layout.encode_output(text)) == text


def test_opening_holds_only_the_first_turn(layout: ChatLayout, tokenizer: Any, make_task: Maker) -> None:
    task = make_task(("first question", [], []), ("second question", [], []))
    prompt = tokenizer.decode(layout.opening(task))
    assert "first question" in prompt and "second question" not in prompt
