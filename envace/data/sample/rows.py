"""The rows of one sample file: conversations of a partition as raw records, a few of them with faults."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain, islice
from typing import Any

from envace.data.sample.conversations import Lengths, draw_conversations, generate_conversations, usual_length
from envace.data.sample.large import large_rows
from envace.data.sample.records import to_raw_record
from envace.data.sample.row_faults import ROW_FAULTS, spoil_rows
from envace.data.sample.turns import Partition
from envace.data.sample.world import World


def sample_rows(
    world: World,
    count: int,
    seed: int,
    partition: Partition,
    faulty_share: float = 0.0,
    lengths: Lengths = usual_length,
) -> list[dict[str, Any]]:
    """`count` raw records of a partition. `faulty_share` of them are spoiled; ask for that in training files only."""
    conversations = generate_conversations(world, count, seed, partition, lengths=lengths)
    rows = [to_raw_record(world, conversation) for conversation in conversations]
    spoil_rows(rows, faulty_share, seed)
    return rows


def stream_rows(
    world: World, count: int, seed: int, partition: Partition, row_bytes: int | None = None, faulty_share: float = 0.0
) -> Iterator[dict[str, Any]]:
    """The same rows one by one, at flat memory; with `row_bytes`, large ones of about so many bytes of indented JSON.

    Other rows than in `sample_rows` are spoiled: here nobody can look ahead. Raises DataError like them.
    """
    if row_bytes is None:
        endless = (to_raw_record(world, each) for each in draw_conversations(world, seed, partition))
    else:
        endless = large_rows(world, seed, partition, row_bytes)
    rows = islice(endless, count)
    return _spoiled(rows, count, faulty_share, seed) if faulty_share else rows


def _spoiled(rows: Iterator[dict[str, Any]], count: int, share: float, seed: int) -> Iterator[dict[str, Any]]:
    """The rows, a share of them with faults, kinds in turn. A fault that does not fit a row waits for the next one.

    The first row stays right: the rows that repeat another one repeat it.
    """
    first = next(rows)
    wanted = min(round(share * count), count - 1)
    chosen = set(random.Random(f"streamed faults {seed}").sample(range(1, count), wanted))
    kinds = iter(range(wanted))
    waiting: deque[int] = deque()
    for position, row in enumerate(chain([first], rows)):
        if position in chosen:
            waiting.append(next(kinds) % len(ROW_FAULTS))
        made = row
        for kind in list(waiting):
            spoiled = deepcopy(row)
            if ROW_FAULTS[kind].spoil(spoiled, first):
                made = spoiled
                waiting.remove(kind)
                break
        yield made
