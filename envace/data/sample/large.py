"""Large rows of the sample, of about the size that CM2's rows have: the same turns, more of them, told at length."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from envace.data.sample.catalogue import CATALOGUE
from envace.data.sample.conversations import Conversation, draw_conversations, evenly
from envace.data.sample.long_texts import SYSTEM_MESSAGES
from envace.data.sample.long_tools import long_tools
from envace.data.sample.pretty import pretty_json
from envace.data.sample.reasoning import further_thoughts, thought_before_calls, thought_before_reply
from envace.data.sample.records import Wording, raw_record, with_uuid
from envace.data.sample.turns import Partition
from envace.data.sample.vocabulary import COMMON, RESERVED, Pools
from envace.data.sample.world import World
from envace.errors import DataError

MIN_ROW_BYTES, MAX_ROW_BYTES = 40_000, 100_000
"""Below, there is no room for all tools and a turn; above, a conversation would run out of different messages."""
_TURN_BYTES = 8_500
"""About what a turn takes in CM2's public record: three quarters for the turn itself, the rest for wordy reasoning."""
_UUID_BYTES = len(pretty_json({"uuid": "0" * 36}, depth=1))


def large_rows(world: World, seed: int, partition: Partition, row_bytes: int) -> Iterator[dict[str, Any]]:
    """Rows without end whose indented JSON has `row_bytes` bytes in the mean, no two in which the user says the same.

    All 20 tools are offered, with full descriptions; results are what the world truly answers. The sizes of rows lie
    within about a third of the mean. Raises DataError for a size out of bounds, and where the partition has no more
    different conversations.
    """
    if not MIN_ROW_BYTES <= row_bytes <= MAX_ROW_BYTES:
        raise DataError(f"row bytes {row_bytes}: large rows have {MIN_ROW_BYTES} to {MAX_ROW_BYTES} bytes in the mean")
    rng = random.Random(f"large rows {partition} {seed}")
    pools = RESERVED if partition == "hard" else COMMON
    tools = long_tools(list(CATALOGUE), pools, rng)
    fixed = len(pretty_json(list(tools.values()), depth=2).encode()) + len(SYSTEM_MESSAGES[0]) + _UUID_BYTES
    usual = max(2, round((row_bytes - fixed) / _TURN_BYTES))
    turn_bytes = (row_bytes - fixed) / usual
    spread = max(1, usual // 3)
    lengths = evenly(usual - spread, usual + spread)
    for conversation in draw_conversations(world, seed, partition, purpose="large tasks", lengths=lengths):
        record = _long_record(world, conversation, pools, rng)
        told = {**record, "tools": []}  # they are always about equally long
        size = len(pretty_json(told, depth=1).encode()) + fixed - len(SYSTEM_MESSAGES[0])
        _lengthen(record, conversation, round(fixed + turn_bytes * len(conversation.turns)) - size, rng)
        yield with_uuid(record)


def _long_record(world: World, conversation: Conversation, pools: Pools, rng: random.Random) -> dict[str, Any]:
    names = list(CATALOGUE)
    rng.shuffle(names)
    wording = Wording(
        tool=long_tools(names, pools, rng).__getitem__,
        before_calls=lambda turn, step: thought_before_calls(world, turn, step),
        before_reply=lambda turn: thought_before_reply(world, turn),
        system=rng.choice(SYSTEM_MESSAGES),
    )
    return raw_record(world, replace(conversation, tools=tuple(names)), wording)


def _lengthen(record: dict[str, Any], conversation: Conversation, missing: int, rng: random.Random) -> None:
    """Add about `missing` bytes of thoughts to the think blocks of a record, evenly."""
    turns = iter(conversation.turns)
    growing: list[tuple[dict[str, Any], Iterator[str], list[str]]] = []
    for message in record["messages"]:
        if message["role"] == "user":
            turn = next(turns)
        elif message["role"] == "assistant":
            growing.append((message, further_thoughts(turn, rng), []))
    sources = list(growing)
    while sources and missing > 0:
        rng.shuffle(sources)
        for source in list(sources):
            sentence = next(source[1], None)
            if sentence is None:
                sources.remove(source)
            elif missing > 0:
                source[2].append(sentence)
                missing -= len(sentence) + 2  # and an escaped line break
    for message, _, added in growing:
        if added:
            message["content"] = message["content"].replace("\n</think>", "\n" + "\n".join(added) + "\n</think>", 1)
