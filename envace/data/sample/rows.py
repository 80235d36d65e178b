"""The rows of one sample file: conversations of a partition as raw records, a few training rows with faults."""

from __future__ import annotations

from typing import Any

from envace.data.sample.conversations import generate_conversations
from envace.data.sample.records import to_raw_record
from envace.data.sample.row_faults import spoil_rows
from envace.data.sample.turns import Partition
from envace.data.sample.world import World


def sample_rows(
    world: World, count: int, seed: int, partition: Partition, faulty_share: float = 0.0
) -> list[dict[str, Any]]:
    """`count` raw records of a partition. `faulty_share` of them are spoiled; ask for that in training files only."""
    conversations = generate_conversations(world, count, seed, partition)
    rows = [to_raw_record(world, conversation) for conversation in conversations]
    spoil_rows(rows, faulty_share, seed)
    return rows
