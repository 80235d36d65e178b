"""Demonstrations: clean ones are right for both roles, faulty ones err at about the stated rates and only as stated."""

from __future__ import annotations

import json
import random

from envace.data.sample import (
    Demonstration,
    FaultRates,
    World,
    clean_demonstration,
    faulty_demonstration,
    generate_conversations,
    generate_demonstrations,
    partition_of,
    to_raw_record,
)
from envace.files import compact_json

RATES = FaultRates(act_random=0.15, act_dominant=0.7, result=0.3)
RESULT_FAULTS = {"malformed", "false_error", "wrong_value"}
ACT_FAULTS = {"bare_reply", "skip_call", "wrong_arg", "drop_step", "drop_parallel", "forbidden"}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _pairs(demonstration: Demonstration) -> list[tuple[str, str]]:
    """True and imagined result of every call."""
    return [
        pair
        for act, rehearse in zip(demonstration.act, demonstration.rehearse, strict=True)
        for (_, true), (_, imagined) in zip(act.steps, rehearse.steps, strict=True)
        for pair in zip(true, imagined, strict=True)
    ]


def test_clean_demonstrations_are_the_reference_of_the_record(world: World) -> None:
    for conversation in generate_conversations(world, 50, 0, "train"):
        demonstration = clean_demonstration(world, conversation)
        assert demonstration.act == demonstration.rehearse and demonstration.faults == ()
        recorded = [m["content"] for m in to_raw_record(world, conversation)["messages"] if m["role"] == "tool"]
        assert [true for true, _ in _pairs(demonstration)] == recorded
        assert [t.reply for t in demonstration.act] == [t.reply for t in conversation.turns]
        assert tuple(tool.name for tool in demonstration.tools) == conversation.tools


def test_faulty_demonstrations_execute_their_own_calls_truly(world: World) -> None:
    for demonstration in generate_demonstrations(world, 100, 0, RATES):
        for act, rehearse in zip(demonstration.act, demonstration.rehearse, strict=True):
            assert [calls for calls, _ in act.steps] == [calls for calls, _ in rehearse.steps]
            assert act.reply == rehearse.reply and act.user_message == rehearse.user_message
            for calls, results in act.steps:
                answers = [compact_json(world.execute(call.tool_name, call.parsed())) for call in calls]
                assert list(results) == answers


def test_faults_come_at_about_the_stated_rates(world: World) -> None:
    demonstrations = generate_demonstrations(world, 1000, 0, RATES)
    faults = [fault for d in demonstrations for fault in d.faults]
    assert set(faults) == RESULT_FAULTS | ACT_FAULTS
    pairs = [pair for d in demonstrations for pair in _pairs(d)]
    assert 0.26 < sum(fault in RESULT_FAULTS for fault in faults) / len(pairs) < 0.34
    turns = sum(len(d.act) for d in demonstrations)
    assert 0.5 < sum(fault in ACT_FAULTS for fault in faults) / turns < 0.8
    assert sum(not _is_json(imagined) for _, imagined in pairs) == faults.count("malformed")
    assert all(_is_json(true) for true, _ in pairs)


def test_without_rates_nothing_is_faulty_and_only_training_messages_are_used(world: World) -> None:
    for demonstration in generate_demonstrations(world, 100, 5):
        assert demonstration.faults == ()
        assert all(partition_of(turn.user_message) == "train" for turn in demonstration.act)


def test_demonstrations_are_the_same_on_every_run(world: World) -> None:
    assert generate_demonstrations(world, 50, 3, RATES) == generate_demonstrations(world, 50, 3, RATES)
    conversation = generate_conversations(world, 1, 0, "train")[0]
    one, other = (
        faulty_demonstration(world, conversation, random.Random(7), act_random=1, act_dominant=0, result=1)
        for _ in range(2)
    )
    assert one == other and one.faults


def test_demonstrations_are_not_the_training_tasks_over_again(world: World) -> None:
    tasks = {c.key for c in generate_conversations(world, 100, 0, "train")}
    demonstrations = {json.dumps([t.user_message for t in d.act]) for d in generate_demonstrations(world, 100, 0)}
    assert len(demonstrations & tasks) < 50
