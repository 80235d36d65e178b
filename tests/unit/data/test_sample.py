"""The bundled sample: the world is a pure function, the partitions share no message, the references are true."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.data.sample import (
    Conversation,
    World,
    build_world,
    generate_conversations,
    partition_of,
    to_raw_record,
    tool_spec,
)
from envace.data.sample.catalogue import DOMAINS
from envace.data.sample.conversations import evenly
from envace.data.sample.rows import sample_rows
from envace.data.sample.turns import Partition
from envace.data.sample.vocabulary import COMMON, RESERVED
from envace.errors import DataError
from envace.files import canonical_json, compact_json
from envace.params_sample import MOST_TURNS

WORLD = build_world(0)
SIZES: dict[Partition, int] = {"train": 400, "heldout": 120, "hard": 60}


@pytest.fixture(scope="module")
def conversations(world: World) -> dict[Partition, list[Conversation]]:
    return {partition: generate_conversations(world, count, 0, partition) for partition, count in SIZES.items()}


def test_world_has_seven_domains_and_twenty_tools_with_schemas(world: World) -> None:
    assert len(DOMAINS) == 7 and len(world.tool_names) == 20
    for name in world.tool_names:
        assert tool_spec(name).openai() == world.tool_schema(name)


@given(st.integers(0, 50))
def test_the_same_seed_builds_the_same_world(seed: int) -> None:
    assert build_world(seed) == build_world(seed)


@given(st.text(), st.dictionaries(st.sampled_from(["city", "day", "amount"]), st.one_of(st.text(), st.booleans())))
def test_wrong_calls_are_answered_with_an_error(name: str, arguments: dict[str, Any]) -> None:
    assert "error" in WORLD.execute(name, arguments)
    assert "error" in WORLD.execute("transfer", arguments)


def test_true_and_false_are_no_whole_numbers(world: World) -> None:
    arguments = {"from": "Ana", "to": "Ben", "amount": True}
    assert world.execute("transfer", arguments) == {"error": "bad arguments"}
    assert world.execute("transfer", {**arguments, "amount": 100}) == {"sent": 100, "to": "Ben"}


def test_reserved_values_can_be_executed(world: World) -> None:
    for city in RESERVED.cities:
        for day in RESERVED.days + COMMON.days:
            assert "sky" in world.execute("get_weather", {"city": city, "day": day})
    for name in RESERVED.names:
        assert "phone" in world.execute("find_phone", {"name": name})


def test_no_user_message_stands_in_two_partitions(conversations: dict[Partition, list[Conversation]]) -> None:
    said = {p: {turn.user_message for c in made for turn in c.turns} for p, made in conversations.items()}
    assert len(set().union(*said.values())) == sum(len(texts) for texts in said.values())
    for partition, texts in said.items():
        assert all(partition_of(text) == partition for text in texts)


@pytest.mark.parametrize("partition", ["train", "heldout"])
@pytest.mark.parametrize("seed", [1, 2])
def test_partitions_are_disjoint_whatever_the_seed(world: World, partition: Partition, seed: int) -> None:
    for conversation in generate_conversations(world, 100, seed, partition):
        assert all(partition_of(turn.user_message) == partition for turn in conversation.turns)


def test_about_one_message_in_eight_is_held_out() -> None:
    texts = [f"Send {n} from {a} to {b}." for n in range(50, 1000, 50) for a in COMMON.names for b in COMMON.names]
    share = sum(partition_of(text) == "heldout" for text in texts) / len(texts)
    assert 0.10 < share < 0.15


def test_hard_values_are_never_met_in_training(conversations: dict[Partition, list[Conversation]]) -> None:
    reserved = {*RESERVED.names, *RESERVED.cities, *RESERVED.items, *RESERVED.days, *RESERVED.titles}
    for partition in ("train", "heldout"):
        for conversation in conversations[partition]:
            texts = [compact_json([[c.arguments for s in t.steps for c in s], t.reply]) for t in conversation.turns]
            assert not reserved & set(re.findall(r"\w+", " ".join(texts)))
    for conversation in conversations["hard"]:
        for turn in conversation.turns:
            assert not turn.offered_tools or reserved & set(re.findall(r"\w+", turn.user_message))


def test_conversations_have_the_stated_sizes_and_kinds(conversations: dict[Partition, list[Conversation]]) -> None:
    for made in conversations.values():
        assert len({c.key for c in made}) == len(made)
        assert all(2 <= len(c.tools) <= 4 and len(set(c.tools)) == len(c.tools) for c in made)
        assert all({n for t in c.turns for n in t.offered_tools} <= set(c.tools) for c in made)
        assert all(len({t.user_message for t in c.turns}) == len(c.turns) for c in made)
    train = conversations["train"]
    kinds = Counter(turn.kind for c in train for turn in c.turns)
    assert set(kinds) == {"single", "parallel", "chain", "chain_refuse", "refuse", "none", "error"}
    lengths = Counter(len(c.turns) for c in train)
    assert 0.4 < lengths[1] / len(train) < 0.65 and 0.08 < lengths[3] / len(train) < 0.25


def test_references_replayed_in_the_world_agree_with_the_record(
    world: World, conversations: dict[Partition, list[Conversation]]
) -> None:
    for conversation in (c for made in conversations.values() for c in made):
        record = to_raw_record(world, conversation)
        pending: list[dict[str, Any]] = []
        for message in record["messages"]:
            pending += [call["function"] for call in message["tool_calls"]]
            if message["role"] == "tool":
                call = pending.pop(0)
                answer = compact_json(world.execute(call["name"], json.loads(call["arguments"])))
                assert message["content"] == answer
        assert not pending


def test_outcomes_are_met_by_their_references(world: World, conversations: dict[Partition, list[Conversation]]) -> None:
    for conversation in (c for made in conversations.values() for c in made):
        record = to_raw_record(world, conversation)
        for turn, outcome in zip(conversation.turns, record["outcome"]["turns"], strict=True):
            made = [[call.tool_name, call.parsed()] for step in turn.steps for call in step]
            assert made == [[call["name"], call["arguments"]] for call in outcome["required_calls"]]
            assert not set(outcome["forbidden_tools"]) & {name for name, _ in made}
            assert outcome["required_facts"]
            for fact in outcome["required_facts"]:
                assert re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", turn.reply)


def test_rows_are_the_same_on_every_run_and_only_training_rows_are_spoiled(world: World) -> None:
    rows = sample_rows(world, 200, 0, "train", 0.05)
    assert canonical_json(rows) == canonical_json(sample_rows(build_world(0), 200, 0, "train", 0.05))
    right = sample_rows(world, 200, 0, "train")
    assert sum(one != other for one, other in zip(rows, right, strict=True)) == 10


@pytest.mark.parametrize("turns", [(1, 1), (4, 6), (MOST_TURNS, MOST_TURNS)])
@pytest.mark.parametrize(("partition", "count"), [("train", 60), ("heldout", 60), ("hard", 60)])
def test_conversations_have_as_many_turns_as_are_asked_for(
    world: World, partition: Partition, count: int, turns: tuple[int, int]
) -> None:
    made = generate_conversations(world, count, 0, partition, lengths=evenly(*turns))
    lengths = [len(conversation.turns) for conversation in made]
    assert {min(lengths), max(lengths)} == set(turns)
    for conversation in made:
        said = [turn.user_message for turn in conversation.turns]
        assert len(set(said)) == len(said) and {partition_of(message) for message in said} == {partition}


def test_too_many_conversations_are_refused_in_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envace.data.sample.conversations._MAX_TRIES", 1)
    with pytest.raises(DataError, match="ask for fewer"):
        generate_conversations(world, 10**6, 0, "hard")
