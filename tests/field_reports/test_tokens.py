"""Reports about tokens and masks: ids that were lost, re-encoded, or stripped by one side only. Each whole kind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.chat.layout import ChatLayout, render_calls
from envace.engines.protocol import Generation, GenerationRequest
from envace.files import compact_json
from envace.types import Output, Role, Rollout, StopReason, Task, ToolCall

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
SUNNY = '{"sky": "sunny"}'

_TOOLS = "{%- for t in tools or [] -%}{{ 'tool ' ~ t.function.name ~ '\\n' }}{%- endfor -%}"
_ASK = "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
PLAIN = (
    _TOOLS
    + "{%- for m in messages -%}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{%- endfor -%}"
    + _ASK
)
# As Qwen3's: reasoning before the last user message is left out.
STRIPS = (
    _TOOLS
    + "{%- set seen = namespace(last=-1) -%}"
    + "{%- for m in messages if m.role == 'user' -%}{%- set seen.last = messages.index(m) -%}{%- endfor -%}"
    + "{%- for m in messages -%}{%- set text = m.content -%}"
    + "{%- if m.role == 'assistant' and loop.index0 < seen.last and '</think>' in text -%}"
    + "{%- set text = text.split('</think>')[-1].lstrip('\\n') -%}{%- endif -%}"
    + "{{ '<|im_start|>' ~ m.role ~ '\\n' ~ text ~ '<|im_end|>\\n' }}{%- endfor -%}"
    + _ASK
)
# As Qwen3's: the results of one output stand together in one user message.
GROUPS = (
    _TOOLS
    + "{%- for m in messages -%}{%- if m.role == 'tool' -%}"
    + "{%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}"
    + "{{ '\\n<tool_response>\\n' ~ m.content ~ '\\n</tool_response>' }}"
    + "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}"
    + "{%- else -%}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{%- endif -%}{%- endfor -%}"
    + _ASK
)
# As Qwen2.5's: a default system prompt where none is given.
DEFAULTS = (
    "{%- if not messages or messages[0].role != 'system' -%}"
    "{{ '<|im_start|>system\\nBe helpful.<|im_end|>\\n' }}{%- endif -%}" + PLAIN
)


@pytest.fixture(scope="session")
def layout_of(tokenizer: Any) -> Callable[[str], tuple[Any, ChatLayout]]:
    """Makes a tokenizer with another template, and its layout."""

    def make(template: str) -> tuple[Any, ChatLayout]:
        other = copy.deepcopy(tokenizer)
        other.chat_template = template
        return other, ChatLayout(other)

    return make


def prompts_rendered_whole(tokenizer: Any, task: Task, rollout: Rollout) -> list[list[int]]:
    """The prompt of each act output as the template renders the conversation up to it, encoded in one piece."""
    messages: list[dict[str, Any]] = []
    if task.system_prompt is not None:
        messages.append({"role": "system", "content": task.system_prompt})
    prompts = []
    for turn in rollout.turns:
        messages.append({"role": "user", "content": turn.user_message})
        written = [o.text for o in acts(rollout) if o.turn_index == turn.turn_index]
        for text, step in zip(written, turn.steps, strict=True):
            rendered = tokenizer.apply_chat_template(
                messages, tools=[t.openai() for t in task.tools], add_generation_prompt=True, tokenize=False
            )
            prompts.append(tokenizer.encode(rendered, add_special_tokens=False))
            messages.append({"role": "assistant", "content": text})
            messages += [{"role": "tool", "content": o.content} for o in step.observations]
    return prompts


def acts(rollout: Rollout) -> list[Output]:
    return [o for o in rollout.outputs if o.role is Role.ACT]


def thinking_script(write: Write, turns: int, calls: int = 2) -> list[str]:
    """In each turn: an output that thinks and calls, the results, one that is refused, one that thinks and replies."""
    script = []
    for turn in range(turns):
        script += [f"<think>\nplan {turn}\n</think>\n\n{write() * calls}", *[SUNNY] * calls]
        script += ["<tool_call>oops</tool_call>", f"<think>\nsum {turn}\n</think>\n\nIt is sunny."]
    return script


@pytest.mark.parametrize("template", [PLAIN, STRIPS, GROUPS, DEFAULTS], ids=["plain", "strips", "groups", "defaults"])
@pytest.mark.parametrize("system_prompt", [None, "Be brief.\n"])
def test_verl_6501_prompts_put_together_are_those_rendered_whole(
    play: Play, make_task: Maker, write: Write, layout_of: Any, template: str, system_prompt: str | None
) -> None:
    tokenizer, layout = layout_of(template)
    task = make_task(3, system_prompt)
    script = [*[write(), SUNNY, write() * 2, SUNNY, '{"sky": "grey"}', "It is sunny."] * 3]
    roles = "instructions" if template == GROUPS else "header"
    rollout = play(task, script, on=layout, role_prompts=roles, max_prompt_tokens=8000)
    assert rollout.stop_reason is StopReason.COMPLETED, rollout.error
    assert [o.prompt_ids for o in acts(rollout)] == prompts_rendered_whole(tokenizer, task, rollout)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=4, max_size=4))
def test_verl_6501_no_text_at_a_boundary_loses_or_gains_a_token(
    play: Play, make_task: Maker, tokenizer: Any, texts: list[str]
) -> None:
    """Any text as argument, tool result and reply: also such that begin or end with line ends and spaces."""
    call = render_calls([ToolCall(tool_name="get_weather", arguments=compact_json({"city": texts[0]}))])
    script = [call, compact_json({"sky": texts[1]}), call, compact_json([texts[2]]), "It is sunny." + texts[3]]
    task = make_task(2)
    limits = {"max_act_tokens": 2000, "max_rehearse_tokens": 2000}
    rollout = play(task, script * 2, **limits)
    if rollout.stop_reason is StopReason.COMPLETED:
        assert [o.prompt_ids for o in acts(rollout)] == prompts_rendered_whole(tokenizer, task, rollout)


class Spelling:
    """Samples texts character by character: never the ids that encoding the text would give."""

    def __init__(self, layout: ChatLayout, tokenizer: Any, script: list[str]) -> None:
        self._layout, self._tokenizer, self._script = layout, tokenizer, iter(script)
        self.seen: list[tuple[GenerationRequest, Generation]] = []

    async def generate(self, request: GenerationRequest) -> Generation:
        ids = [i for character in next(self._script) for i in self._tokenizer.encode(character)]
        generation = Generation([*ids, self._layout.end_id], [-0.5] * (len(ids) + 1))
        self.seen.append((request, generation))
        return generation


def test_trl_5144_what_was_sampled_is_recorded_even_where_encoding_its_text_gives_fewer_ids(
    play: Play, make_task: Maker, tokenizer: Any, layout: ChatLayout
) -> None:
    calls = '{"name": "get_weather", "arguments": {"city": "Łódź"}}'
    tags = [layout.encode_output(tag)[0] for tag in ("<tool_call>", "</tool_call>")]

    class WithTags(Spelling):
        async def generate(self, request: GenerationRequest) -> Generation:
            generation = await super().generate(request)
            if layout.text(generation.token_ids) == calls:  # a tag is one token, as a policy samples it
                ids = [tags[0], *generation.token_ids[:-1], tags[1], layout.end_id]
                generation = Generation(ids, [-0.5] * len(ids))
                self.seen[-1] = (request, generation)
            return generation

    engine = WithTags(layout, tokenizer, [calls, SUNNY, "It is sunny."] * 2)
    rollout = play(make_task(2), engine)
    assert (rollout.stop_reason, rollout.reward) == (StopReason.COMPLETED, 1.0)
    for output, (request, generation) in zip(rollout.outputs, engine.seen, strict=True):
        assert len(layout.encode_output(output.text)) < len(output.token_ids)
        assert (output.prompt_ids, output.token_ids) == (request.prompt_ids, generation.token_ids)
        assert len(output.log_probs) == len(output.token_ids)
    for earlier, later in pairwise(rollout.outputs):  # and it is what the next prompt continues
        before = earlier.prompt_ids + earlier.token_ids
        assert later.prompt_ids[: len(before)] == before


def test_verl_6854_three_turns_with_reasoning_follow_the_template_and_every_prompt_is_recorded(
    play: Play, make_task: Maker, write: Write, layout_of: Any
) -> None:
    """`current_turn`: earlier reasoning is gone as the template has it, so turn N+1 does not extend turn N."""
    tokenizer, layout = layout_of(STRIPS)
    task = make_task(3)
    rollout = play(task, thinking_script(write, 3), on=layout, keep_reasoning="current_turn", max_prompt_tokens=8000)
    assert rollout.stop_reason is StopReason.COMPLETED, rollout.error
    assert [o.prompt_ids for o in acts(rollout)] == prompts_rendered_whole(tokenizer, task, rollout)
    (*_, last) = acts(rollout)
    said = tokenizer.decode(last.prompt_ids)
    assert "plan 2" in said and "plan 1" not in said and "sum 0" not in said
    for earlier, later in pairwise(acts(rollout)):
        extends = later.prompt_ids[: len(earlier.prompt_ids)] == earlier.prompt_ids
        assert extends or later.turn_index > earlier.turn_index


def test_verl_6854_with_all_reasoning_kept_every_turn_extends_the_one_before(
    play: Play, make_task: Maker, write: Write
) -> None:
    rollout = play(make_task(3), thinking_script(write, 3), keep_reasoning="all", max_prompt_tokens=8000)
    for earlier, later in pairwise(acts(rollout)):
        before = earlier.prompt_ids + earlier.token_ids
        assert later.prompt_ids[: len(before)] == before


@pytest.mark.parametrize("keep", ["all", "current_turn"])
def test_verl_6854_no_reasoning_of_an_act_output_reaches_the_rehearsal_of_its_calls(
    play: Play, make_task: Maker, write: Write, tokenizer: Any, keep: str
) -> None:
    rollout = play(make_task(3), thinking_script(write, 3), keep_reasoning=keep, max_prompt_tokens=8000)
    for output in rollout.outputs:
        if output.role is Role.REHEARSE:
            assert f"plan {output.turn_index}" not in tokenizer.decode(output.prompt_ids)


@pytest.mark.parametrize("system_prompt", [None, "Be brief."])
def test_verl_7378_a_default_system_prompt_stands_where_the_template_puts_it_and_never_twice(
    play: Play, make_task: Maker, write: Write, layout_of: Any, system_prompt: str | None
) -> None:
    tokenizer, layout = layout_of(DEFAULTS)
    rollout = play(make_task(4, system_prompt), [write(), SUNNY, "It is sunny."] * 4, on=layout)
    said = tokenizer.decode(rollout.outputs[-1].prompt_ids)
    assert rollout.stop_reason is StopReason.COMPLETED and said.count("<|im_start|>system") == 1
    assert said.count("Be helpful.") == (system_prompt is None) and said.count("Be brief.") == bool(system_prompt)


@pytest.mark.parametrize("keep", ["all", "current_turn"])
def test_ms_swift_4390_what_the_engine_saw_is_what_is_trained_whatever_is_kept(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout, keep: str
) -> None:
    """There is no second rule that could differ: a training row is the recorded output (see test_agent_loop)."""
    from envace.engines.scripted import ScriptedEngine

    engine = ScriptedEngine(layout, thinking_script(write, 3))
    rollout = play(make_task(3), engine, keep_reasoning=keep, max_prompt_tokens=8000)
    assert rollout.stop_reason is StopReason.COMPLETED
    assert [o.prompt_ids for o in rollout.outputs] == [request.prompt_ids for request in engine.requests]
    assert all("<think>" in o.text for o in acts(rollout) if "oops" not in o.text)  # sampled reasoning is trained
