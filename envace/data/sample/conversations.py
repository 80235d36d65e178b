"""Whole conversations of the sample: which turns, which tools, and which partition a user message belongs to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from envace.data.sample.catalogue import CATALOGUE, DOMAINS
from envace.data.sample.turns import TEMPLATES, Draw, Partition, SampleTurn
from envace.data.sample.turns.small_talk import WORDINGS, small_talk
from envace.data.sample.vocabulary import COMMON, RESERVED, mentions_reserved
from envace.data.sample.world import World
from envace.errors import DataError
from envace.files import canonical_json, digest, sha256_text

TURN_SHARES = (0.55, 0.30, 0.15)
"""Shares of conversations with 1, 2 and 3 turns."""
SMALL_TALK_FIRST, SMALL_TALK_LATER = 0.04, 0.20
HELD_OUT_ONE_IN = 8
_MAX_TRIES = 2000
Lengths = Callable[[random.Random], int]
"""Draws how many turns a conversation has."""


def usual_length(rng: random.Random) -> int:
    """One to three turns."""
    return rng.choices([1, 2, 3], TURN_SHARES)[0]


def evenly(fewest: int, most: int) -> Lengths:
    """Any number of turns from the fewest to the most, equally often."""
    return lambda rng: rng.randint(fewest, most)


@dataclass(frozen=True)
class Conversation:
    """One conversation over one domain: the tools it offers (right ones and distractors) and its turns."""

    domain: str
    partition: Partition
    tools: tuple[str, ...]
    turns: tuple[SampleTurn, ...]

    @property
    def key(self) -> str:
        """Equal for two conversations in which the user says the same."""
        return canonical_json([turn.user_message for turn in self.turns])


def partition_of(user_message: str) -> Partition:
    """The only partition in which this message may appear: what makes the files disjoint by construction.

    A message with a reserved value is hard, a small-talk one is where its wording is listed, and for all others a hash
    of the text decides, whatever the seed: one in eight is held out.
    """
    for partition, wordings in WORDINGS.items():
        if any(user_message == text for _, text in wordings):
            return partition
    if mentions_reserved(user_message):
        return "hard"
    return "heldout" if int(sha256_text(f"partition {user_message}")[:8], 16) % HELD_OUT_ONE_IN == 0 else "train"


def generate_conversations(
    world: World,
    count: int,
    seed: int,
    partition: Partition,
    purpose: str = "tasks",
    lengths: Lengths = usual_length,
) -> list[Conversation]:
    """The first `count` conversations that `draw_conversations` gives; raises DataError like it."""
    return list(islice(draw_conversations(world, seed, partition, purpose, lengths), count))


def draw_conversations(
    world: World, seed: int, partition: Partition, purpose: str = "tasks", lengths: Lengths = usual_length
) -> Iterator[Conversation]:
    """Draw conversations of a partition without end, no two in which the user says the same.

    Different purposes draw differently from one seed, so that demonstrations are not the tasks over again. Memory holds
    16 bytes of what each one says. Raises DataError where the partition has no more different ones.
    """
    rng = random.Random(f"{purpose} {partition} {seed}")
    draw = Draw(rng, RESERVED if partition == "hard" else COMMON)
    seen: set[bytes] = set()
    misses = 0
    while misses <= _MAX_TRIES:
        conversation = _conversation(world, draw, partition, lengths)
        key = digest(conversation.key)
        misses = misses + 1 if key in seen else 0
        if not misses:
            seen.add(key)
            yield conversation
    raise DataError(f"the sample world has only {len(seen)} different {partition} conversations; ask for fewer")


def _conversation(world: World, draw: Draw, partition: Partition, lengths: Lengths) -> Conversation:
    rng = draw.rng
    domain = rng.choice(DOMAINS)
    length = lengths(rng)
    turns: list[SampleTurn] = []
    while len(turns) < length:
        if rng.random() < (SMALL_TALK_LATER if turns else SMALL_TALK_FIRST):
            turn = small_talk(domain, partition, rng)
        else:
            turn = _domain_turn(world, draw, domain, partition)
        if all(turn.user_message != earlier.user_message for earlier in turns):
            turns.append(turn)
    return Conversation(domain, partition, _offer(turns, rng), tuple(turns))


def _domain_turn(world: World, draw: Draw, domain: str, partition: Partition) -> SampleTurn:
    for _ in range(_MAX_TRIES):
        turn = draw.rng.choice(TEMPLATES[domain])(world, draw)
        if partition_of(turn.user_message) == partition:
            return turn
    raise DataError(f"the sample world has no {partition} turn in the domain {domain}")


def _offer(turns: list[SampleTurn], rng: random.Random) -> tuple[str, ...]:
    """Two to four tools in random order: those the turns speak of, filled up with distractors."""
    names = sorted({name for turn in turns for name in turn.offered_tools})
    distractors = [name for name in CATALOGUE if name not in names]
    rng.shuffle(distractors)
    while len(names) < 2 or (len(names) < 4 and rng.random() < 0.35):
        names.append(distractors.pop())
    rng.shuffle(names)
    return tuple(names)
