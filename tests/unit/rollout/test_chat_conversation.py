"""Rollouts on a chat endpoint: the same loop, messages and calls in the API's shape, and a log of what was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.endpoints.reply import ChatReply
from envace.errors import EndpointError
from envace.rollout.chat_conversation import Sent, unfold_chat
from envace.rollout.loop import RolloutSettings
from envace.rollout.records import rollout_row
from envace.types import Role, Rollout, StopReason, Task

Maker = Callable[..., Task]
WEATHER = ("get_weather", {"city": "Oslo"})
SUNNY = '{"weather": "sunny"}'


def said(text: str, reasoning: str = "", finish: str = "stop", prompt: int = 10) -> ChatReply:
    return ChatReply(text, [], finish, {"prompt_tokens": prompt, "completion_tokens": 5}, reasoning)


def called(*calls: tuple[str, Any], text: str = "", reasoning: str = "") -> ChatReply:
    """Calls in the API's shape; arguments that are no dict are taken as the JSON text itself."""
    shaped = [
        {
            "id": f"x{i}",
            "type": "function",
            "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)},
        }
        for i, (name, a) in enumerate(calls)
    ]
    return ChatReply(text, shaped, "tool_calls", {"prompt_tokens": 10, "completion_tokens": 5}, reasoning)


class Client:
    """Plays replies; an exception among them is raised."""

    def __init__(self, replies: list[ChatReply | Exception]) -> None:
        self.replies, self.asked = iter(replies), 0

    async def chat(self, messages: list[dict[str, Any]], **settings: Any) -> ChatReply:
        self.asked += 1
        reply = next(self.replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def talk(settings_with: Callable[..., RolloutSettings]) -> Callable[..., tuple[Rollout, list[Sent]]]:
    """Unfolds a task on a client that plays the replies."""

    def run(task: Task, *replies: ChatReply | Exception, **changes: Any) -> tuple[Rollout, list[Sent]]:
        sent: list[Sent] = []
        work = unfold_chat(task, 0, client=Client([*replies]), settings=settings_with(**changes), sent=sent)
        return asyncio.run(work), sent

    return run


Talk = Callable[..., tuple[Rollout, list[Sent]]]


def test_a_rollout_has_the_same_shape_and_reward_as_one_on_tokens(talk: Talk, make_task: Maker) -> None:
    task = make_task(("Sky?", [WEATHER], ["sunny"])).model_copy(update={"system_prompt": "Be brief."})
    rollout, sent = talk(task, called(WEATHER), said(SUNNY), said("It is sunny."))
    assert (rollout.stop_reason, rollout.reward, rollout.success) == (StopReason.COMPLETED, 1.0, True)
    assert [o.role for o in rollout.outputs] == [Role.ACT, Role.REHEARSE, Role.ACT] == [s.role for s in sent]
    assert [o.source for o in rollout.turns[0].observations] == ["rehearsed"]
    start = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sky?"}]
    assert sent[0].messages == start
    assert all(s.tools == [t.openai() for t in task.tools] and s.messages[:2] == start for s in sent)
    call = {"id": "call_0", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    assert sent[2].messages[2:] == [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": SUNNY},
    ]
    assert len({s.seed for s in sent}) == 3


def test_these_rollouts_have_no_tokens_to_train_on(talk: Talk, make_task: Maker) -> None:
    rollout, _ = talk(make_task(("Sky?", [], [])), called(WEATHER), said(SUNNY), said("Fine."))
    assert all(not o.is_trainable and o.log_probs == o.prompt_ids == [] for o in rollout.outputs)
    row = rollout_row(rollout, step=0, phase="rehearsal")
    assert [(o["prompt_tokens"], o["tokens"], o["shared_tokens"]) for o in row["outputs"]] == [(10, 5, None)] * 3
    assert "get_weather" in row["outputs"][0]["text"]


def test_the_rehearse_role_is_asked_by_instruction_and_sees_calls_without_reasoning(
    talk: Talk, make_task: Maker
) -> None:
    first = called(WEATHER, WEATHER, text="One moment.", reasoning="a secret")
    answer = said("<think>hm</think>" + SUNNY)
    rollout, sent = talk(make_task(("Sky?", [], [])), first, answer, said('{"n": 2}'), said("Fine."))
    asked = [s.messages for s in sent if s.role is Role.REHEARSE]
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    for number, messages in enumerate(asked, 1):
        assert messages[0] == {"role": "user", "content": "Sky?"}
        assert messages[1] == {"role": "assistant", "content": f"One moment.\n{call}\n{call}"}
        assert messages[2]["role"] == "user" and len(messages) == 3
        assert messages[2]["content"].endswith(f"Answer call {number} of the 2 in the last assistant message.")
    assert SUNNY not in asked[0][2]["content"]
    assert asked[1][2]["content"].startswith(f"<tool_response>\n{SUNNY}\n</tool_response>\n")
    assert [o.content for o in rollout.turns[0].observations] == [SUNNY, '{"n": 2}']
    assert sent[-1].messages[1]["content"] == "<think>\na secret\n</think>\n\nOne moment."
    assert "hm" not in json.dumps(sent[-1].messages)


def test_concurrent_rehearsals_do_not_see_each_other(talk: Talk, make_task: Maker) -> None:
    replies = [called(WEATHER, WEATHER), said(SUNNY), said('{"n": 2}'), said("Fine.")]
    _, sent = talk(make_task(("Sky?", [], [])), *replies, parallel_calls="concurrent")
    assert not any("<tool_response>" in s.messages[-1]["content"] for s in sent if s.role is Role.REHEARSE)


@pytest.mark.parametrize("keep", ["all", "current_turn"])
def test_reasoning_of_earlier_turns_is_kept_by_the_same_switch(talk: Talk, make_task: Maker, keep: str) -> None:
    task = make_task(("Sky?", [], []), ("And now?", [], []))
    replies = [said("Fine.", reasoning="secret one"), said("<think>secret two</think>Still fine.")]
    rollout, sent = talk(task, *replies, keep_reasoning=keep)
    assert [t.reply for t in rollout.turns] == ["Fine.", "Still fine."]
    assert [t.steps[0].reasoning for t in rollout.turns] == ["secret one", "secret two"]
    assert ("secret one" in json.dumps(sent[1].messages)) is (keep == "all")


@pytest.mark.parametrize("arguments", ['{"city": "Oslo",}', '{city: "Oslo"}', '"Oslo"', "[]", "", '{"city": NaN}'])
def test_arguments_that_are_no_json_object_are_answered_by_code_and_never_run(
    talk: Talk, make_task: Maker, arguments: str
) -> None:
    rollout, sent = talk(make_task(("Sky?", [], [])), called(("get_weather", arguments)), said("Sorry."))
    assert rollout.turns[0].calls == [] and [o.source for o in rollout.turns[0].observations] == ["code"]
    assert "tool call 1" in rollout.turns[0].observations[0].content
    assert [m["role"] for m in sent[1].messages] == ["user", "assistant", "user"]  # no tool message without a call


def test_empty_arguments_are_an_empty_object_where_the_tool_takes_none(talk: Talk, make_task: Maker) -> None:
    task = make_task(("Sky?", [], []))
    bare = task.tools[0].model_copy(update={"name": "list_all", "parameters_schema": "{}"})
    task = task.model_copy(update={"tools": [*task.tools, bare]})
    rollout, _ = talk(task, called(("list_all", " ")), said("[]"), said("Fine."))
    assert rollout.turns[0].calls[0].arguments == "{}" and rollout.stop_reason is StopReason.COMPLETED


def test_a_server_without_a_tool_call_parser_gives_calls_in_the_text(talk: Talk, make_task: Maker) -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    rollout, sent = talk(make_task(("Sky?", [], [])), said(text), said(SUNNY), said("Fine."))
    assert [c.tool_name for c in rollout.turns[0].calls] == ["get_weather"]
    assert sent[2].messages[2]["tool_call_id"] == sent[2].messages[1]["tool_calls"][0]["id"]


def test_every_limit_holds_here_too(talk: Talk, make_task: Maker) -> None:
    task = make_task(("Sky?", [], []))
    cut, _ = talk(task, ChatReply("", called(WEATHER).tool_calls, "length", {}))
    assert cut.stop_reason is StopReason.OUTPUT_TRUNCATED and cut.turns[0].calls == []
    cut, _ = talk(task, called(WEATHER), said(SUNNY, finish="length"))
    assert cut.stop_reason is StopReason.OUTPUT_TRUNCATED and cut.turns[0].observations == []
    endless, _ = talk(task, *[called(WEATHER), said(SUNNY)] * 3, max_outputs=3)
    assert endless.stop_reason is StopReason.MAX_OUTPUTS
    broken, _ = talk(task, *[called(("get_weather", "oops"))] * 3, max_invalid_calls=3)
    assert broken.stop_reason is StopReason.INVALID_CALL
    invalid, _ = talk(task, called(WEATHER), said("sunny"))
    assert invalid.stop_reason is StopReason.INVALID_REHEARSAL
    long, _ = talk(make_task(("a", [], []), ("b", [], [])), said("Fine.", prompt=2000), max_prompt_tokens=1500)
    assert long.stop_reason is StopReason.CONTEXT_OVERFLOW and len(long.outputs) == 1


def test_an_endpoint_that_fails_gives_no_reward(talk: Talk, make_task: Maker) -> None:
    rollout, sent = talk(make_task(("Sky?", [], [])), called(WEATHER), EndpointError("503 three times"))
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None
    assert rollout.error == "503 three times" and len(sent) == 2


def test_a_task_without_anything_to_score_by_can_be_unfolded_unscored(talk: Talk, make_task: Maker) -> None:
    task = make_task(("Sky?", [], [])).model_copy(update={"outcome": None})
    rollout, _ = talk(task, said("Fine."), reward=None)
    assert rollout.stop_reason is StopReason.COMPLETED and rollout.reward is None and not rollout.success
