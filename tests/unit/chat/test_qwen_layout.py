"""Templates that behave as Qwen3's: spliced equals rendered, and what cannot be spliced is refused with its reason."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from envace.chat.history import TokenHistory
from envace.chat.layout import ChatLayout
from envace.chat.parser import parse_act
from envace.errors import EngineError
from envace.types import Step, Task

Message = dict[str, Any]
OPENED = "{{ '<|im_start|>assistant\n<think>\n' }}"
NO_THINKING = "{{ '<|im_start|>assistant\n<think>\n\n</think>\n\n' }}"


def with_generation_prompt(tokenizer: Any, prompt: str) -> Any:
    other = copy.deepcopy(tokenizer)
    other.chat_template = tokenizer.chat_template.replace("{{ '<|im_start|>assistant\\n' }}", prompt)
    assert other.chat_template != tokenizer.chat_template
    return other


def opening_messages(task: Task) -> list[Message]:
    system = [] if task.system_prompt is None else [{"role": "system", "content": task.system_prompt}]
    return [*system, {"role": "user", "content": task.turns[0].user_message}]


def messages_of(step: Step, as_text: bool) -> list[Message]:
    calls = [
        {"function": {"name": c.tool_name, "arguments": c.arguments if as_text else c.parsed()}}
        for c in step.tool_calls
    ]
    thought = f"<think>\n{step.reasoning}\n</think>\n\n" if step.reasoning else ""
    said = {"role": "assistant", "content": thought + step.reply, "tool_calls": calls}
    return [said, *({"role": "tool", "content": r.content} for r in step.tool_results)]


def encoded(tokenizer: Any, task: Task, messages: list[Message]) -> list[int]:
    tools = [t.openai() for t in task.tools]
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


def test_every_act_prompt_of_a_reference_is_what_the_template_renders(
    qwen_tokenizer: Any, qwen_layout: ChatLayout, sample_tasks: list[Task]
) -> None:
    several = 0
    for number, task in enumerate(sample_tasks[:120]):
        task = task.model_copy(update={"system_prompt": "Be brief.\n" if number % 2 else None})
        history, messages = TokenHistory(qwen_layout, "current_turn", "instructions"), opening_messages(task)
        history.open(task)
        assert history.act_prompt() == encoded(qwen_tokenizer, task, messages)
        for turn in task.turns:
            if turn.turn_index:
                messages.append({"role": "user", "content": turn.user_message})
                history.user(turn.user_message)
            for step in turn.reference_steps:
                thinking = step.model_copy(update={"reasoning": f"I plan.\nStep {number}!"})
                text = f"<think>\n{thinking.reasoning}\n</think>\n\n" + qwen_layout.written(step.reply, step.tool_calls)
                history.act(qwen_layout.encode_output(text), parse_act(text).thoughts)
                for result in step.tool_results:
                    history.result(result.content)
                messages += messages_of(thinking, as_text=True)
                several += len(step.tool_results) > 1
                if step.tool_calls:
                    assert history.act_prompt() == encoded(qwen_tokenizer, task, messages)
        messages.append({"role": "user", "content": "Thanks."})
        history.user("Thanks.")
        assert history.act_prompt() == encoded(qwen_tokenizer, task, messages)
        assert "I plan" not in qwen_tokenizer.decode(history.act_prompt())
    assert several > 10


def test_reference_outputs_are_written_as_the_template_writes_them(
    qwen_tokenizer: Any, qwen_layout: ChatLayout, sample_tasks: list[Task]
) -> None:
    step = next(s for t in sample_tasks for u in t.turns for s in u.reference_steps if len(s.tool_calls) > 1)
    written = qwen_layout.written("One moment.", step.tool_calls)
    assert written.startswith('One moment.\n<tool_call>\n{"name": ') and written.endswith("}\n</tool_call>")
    assert [c.canonical for c in parse_act(written).calls] == [c.canonical for c in step.tool_calls]
    quoting = copy.deepcopy(qwen_tokenizer)  # as Qwen2.5's, which always dumps the arguments
    quoting.chat_template = qwen_tokenizer.chat_template.replace(
        "arguments if arguments is string else arguments | tojson", "arguments | tojson"
    )
    calls = parse_act(ChatLayout(quoting).written("", step.tool_calls)).calls
    assert [c.canonical for c in calls] == [c.canonical for c in step.tool_calls]


def test_the_header_of_a_tool_message_cannot_be_continued_and_instructions_are_named(qwen_layout: ChatLayout) -> None:
    with pytest.raises(EngineError, match="role_prompts to instructions"):
        _ = qwen_layout.rehearse_header
    with pytest.raises(EngineError, match="role_prompts to instructions"):
        TokenHistory(qwen_layout, "all", "header")


@pytest.mark.parametrize("keep", ["all", "current_turn"])
def test_reasoning_opened_in_the_prompt_is_cut_with_its_opening(
    qwen_tokenizer: Any, sample_tasks: list[Task], keep: Any
) -> None:
    tokenizer = with_generation_prompt(qwen_tokenizer, OPENED)
    layout, task = ChatLayout(tokenizer), sample_tasks[0]
    assert layout.opens_reasoning
    history = TokenHistory(layout, keep, "instructions")
    history.open(task)
    first = history.act_prompt()
    sampled = layout.encode_output("secret\n</think>\n\nHello.")
    history.act(sampled, parse_act(layout.text(sampled), opened=True).thoughts)
    history.user("And?")
    later = history.act_prompt()
    if keep == "all":
        assert later[: len(first) + len(sampled)] == first + sampled
    else:
        messages = [*opening_messages(task), {"role": "assistant", "content": "Hello."}]
        assert later == encoded(tokenizer, task, [*messages, {"role": "user", "content": "And?"}])


def test_an_empty_think_block_in_the_header_stays_out_of_later_turns(
    qwen_tokenizer: Any, sample_tasks: list[Task]
) -> None:
    tokenizer = with_generation_prompt(qwen_tokenizer, NO_THINKING)
    layout, task = ChatLayout(tokenizer), sample_tasks[0]
    assert not layout.opens_reasoning
    history = TokenHistory(layout, "current_turn", "instructions")
    history.open(task)
    history.act(layout.encode_output("Hello."), [])
    history.user("And?")
    messages = [*opening_messages(task), {"role": "assistant", "content": "Hello."}]
    assert history.act_prompt() == encoded(tokenizer, task, [*messages, {"role": "user", "content": "And?"}])


def test_an_output_that_is_no_reasoning_yet_is_an_error_where_the_prompt_has_opened_it() -> None:
    parsed = parse_act("I am still thinking", opened=True)
    assert parsed.error is not None and "never closed" in str(parsed.error) and parsed.reply == ""


@pytest.mark.parametrize(
    ("changed", "to", "why"),
    [
        ("{{- content -}}", "{{- content | upper -}}", "not in it exactly as given"),
        ("message.content ~ '<|im_end|>", "(message.content | trim) ~ '<|im_end|>", "not in it exactly"),
        ("'<|im_start|>system\\n'", "(messages | length) ~ '<|im_start|>system\\n'", "later messages change"),
        ("{{ '<|im_start|>assistant\\n' }}", "{{ '<|im_start|>answer\\n' }}", "does not begin an assistant message"),
        ("{%- elif message.role == 'tool' -%}", "{%- elif message.role == 'tol' -%}", "not in it exactly"),
        ("{%- if tools -%}", "{{ raise_exception('no') }}{%- if tools -%}", "cannot render"),
    ],
)  # fmt: skip
def test_templates_that_cannot_be_spliced_are_refused_with_the_reason(
    qwen_tokenizer: Any, changed: str, to: str, why: str
) -> None:
    other = copy.deepcopy(qwen_tokenizer)
    other.chat_template = qwen_tokenizer.chat_template.replace(changed, to)
    assert other.chat_template != qwen_tokenizer.chat_template
    with pytest.raises(EngineError, match=why):
        ChatLayout(other)


def test_a_tokenizer_without_a_chat_template_or_with_another_end_token_is_refused(qwen_tokenizer: Any) -> None:
    bare = copy.deepcopy(qwen_tokenizer)
    bare.chat_template = None
    with pytest.raises(EngineError, match="chat template"):
        ChatLayout(bare)
    other = copy.deepcopy(qwen_tokenizer)
    other.eos_token = "<|endoftext|>"
    with pytest.raises(EngineError, match="eos_token"):
        ChatLayout(other)
