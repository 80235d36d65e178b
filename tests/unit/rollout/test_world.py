"""What answers a call: code that refuses it, the rehearse role, or a true environment; one call after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.types import Role, Rollout, StopReason, Task

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
ASKED = ("What is the weather in Łódź?", [("get_weather", {"city": "Łódź"})], ["sunny"])
SUNNY = '{"weather": "sunny"}'


class World:
    """A true environment that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def respond(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((tool_name, arguments))
        return {"weather": "sunny", "city": arguments["city"]}


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("get_news", {}, "unknown tool"),
        ("get_weather", {}, "city"),
        ("get_weather", {"city": 5}, "city"),
        ("get_weather", {"city": "Łódź", "when": "now"}, "when"),
        ("get_weather", {"city": "Łódź", "days": True}, "days"),
    ],
)
def test_a_bad_call_is_answered_by_code_and_the_policy_may_recover(
    play: Play, make_task: Maker, write: Write, name: str, arguments: dict[str, Any], words: str
) -> None:
    script = [write((name, arguments)), write(("get_weather", {"city": "Łódź"})), SUNNY, "It is sunny."]
    rollout = play(make_task(ASKED), script)
    refused, rehearsed = rollout.turns[0].observations
    assert refused.source == "code" and words in json.loads(refused.content)["error"]
    assert rehearsed.source == "rehearsed" and rollout.stop_reason is StopReason.COMPLETED
    assert rollout.count(Role.REHEARSE) == 1  # what code wrote is no output of the policy
    assert [c.tool_name for c in rollout.turns[0].calls] == [name, "get_weather"]
    assert rollout.reward is not None and rollout.reward < 1  # the refused call counts against "no other call"


def test_without_validation_the_rehearse_role_answers_every_call(play: Play, make_task: Maker, write: Write) -> None:
    script = [write(("get_news", {})), '{"error": "unknown tool"}', "Sorry."]
    rollout = play(make_task(ASKED), script, validation="none")
    assert rollout.count(Role.REHEARSE) == 1 and rollout.turns[0].observations[0].source == "rehearsed"


def test_parallel_calls_are_rehearsed_one_after_the_other_each_seeing_the_earlier_results(
    play: Play, make_task: Maker, write: Write, tokenizer: Any
) -> None:
    cities = ["Łódź", "Kraków", "Zürich"]
    answers = [f'{{"city": "{c}", "weather": "sunny"}}' for c in cities]
    script = [write(*[("get_weather", {"city": c}) for c in cities]), *answers, "All sunny."]
    rollout = play(make_task(ASKED), script)
    assert [o.role for o in rollout.outputs] == [Role.ACT, *[Role.REHEARSE] * 3, Role.ACT]
    rehearsals = [o for o in rollout.outputs if o.role is Role.REHEARSE]
    assert [o.call.parsed()["city"] for o in rehearsals if o.call] == cities
    for position, output in enumerate(rehearsals):
        prompt = tokenizer.decode(output.prompt_ids)
        assert [a in prompt for a in answers] == [i < position for i in range(3)]
    assert all(a in tokenizer.decode(rollout.outputs[-1].prompt_ids) for a in answers)
    assert [o.content for o in rollout.turns[0].observations] == answers


def test_good_and_bad_calls_of_one_output_keep_their_order(play: Play, make_task: Maker, write: Write) -> None:
    calls = write(("get_news", {}), ("get_weather", {"city": "Łódź"}), ("get_weather", {}))
    rollout = play(make_task(ASKED), [calls, SUNNY, "It is sunny."])
    assert [o.source for o in rollout.turns[0].observations] == ["code", "rehearsed", "code"]


def test_an_environment_answers_in_place_of_the_rehearse_role(
    play: Play, make_task: Maker, write: Write, tokenizer: Any
) -> None:
    world = World()
    rollout = play(make_task(ASKED), [write(("get_weather", {"city": "Łódź"})), "It is sunny."], environment=world)
    assert world.asked == [("get_weather", {"city": "Łódź"})]
    assert rollout.count(Role.REHEARSE) == 0 and (rollout.stop_reason, rollout.reward) == (StopReason.COMPLETED, 1.0)
    (observation,) = rollout.turns[0].observations
    assert observation.source == "environment"
    assert json.loads(observation.content) == {"weather": "sunny", "city": "Łódź"}
    assert observation.content in tokenizer.decode(rollout.outputs[-1].prompt_ids)


def test_code_refuses_a_bad_call_before_the_environment_sees_it(play: Play, make_task: Maker, write: Write) -> None:
    world = World()
    play(make_task(ASKED), [write(("get_weather", {})), "Sorry."], environment=world)
    assert world.asked == []


def test_an_environment_that_breaks_ends_only_its_rollout(play: Play, make_task: Maker, write: Write) -> None:
    class Broken:
        def respond(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            raise KeyError("no such table")

    rollout = play(make_task(ASKED), [write(("get_weather", {"city": "Łódź"}))], environment=Broken())
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None
    assert "KeyError" in rollout.error


def test_an_unparsable_block_is_answered_by_code_without_a_call(play: Play, make_task: Maker, write: Write) -> None:
    script = ["<tool_call>{}</tool_call>", write(("get_weather", {"city": "Łódź"})), SUNNY, "It is sunny."]
    rollout = play(make_task(ASKED), script)
    first = rollout.turns[0].observations[0]
    assert first.call is None and first.source == "code" and "block 1" in json.loads(first.content)["error"]
    assert (rollout.stop_reason, rollout.reward) == (StopReason.COMPLETED, 1.0)


def test_a_call_inside_reasoning_is_not_made(play: Play, make_task: Maker, write: Write) -> None:
    thought = f"<think>\n{write(('get_weather', {'city': 'Łódź'}))}\n</think>\n"
    rollout = play(make_task(ASKED), [thought + "It is sunny."])
    assert rollout.turns[0].calls == [] and rollout.turns[0].reply == "It is sunny."


def test_an_empty_output_is_a_reply(play: Play, make_task: Maker) -> None:
    rollout = play(make_task(ASKED), [""])
    assert rollout.stop_reason is StopReason.COMPLETED and rollout.turns[0].reply == ""
