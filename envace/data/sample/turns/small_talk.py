"""Turns that need no tool: thanks, greetings and the like, with other wordings for each partition."""

from __future__ import annotations

import random

from envace.data.sample.turns.turn import Partition, SampleTurn, make_turn

_REPLIES = {
    "thanks": ("You are welcome.", "welcome"),
    "hello": ("Hello, how can I help?", "help"),
    "who": ("I am an assistant.", "assistant"),
    "bye": ("Good bye!", "bye"),
}
# The held-out and hard wordings use only words that training has too: what is new is the message, not its letters.
WORDINGS: dict[Partition, tuple[tuple[str, str], ...]] = {
    "train": (
        ("thanks", "Thank you!"),
        ("thanks", "Thank you, good bye."),
        ("hello", "Hello!"),
        ("hello", "Hello you."),
        ("who", "Who are you?"),
        ("who", "Hello, who are you?"),
        ("bye", "Good bye."),
        ("bye", "Good bye, see you soon."),
    ),
    "heldout": (
        ("thanks", "Thank you."),
        ("hello", "Hello."),
        ("who", "Who are you, please?"),
        ("bye", "Good bye!"),
    ),
    "hard": (
        ("thanks", "Thank you, thank you!"),
        ("hello", "Hello, hello!"),
        ("who", "Please, who are you?"),
        ("bye", "See you soon, good bye."),
    ),
}


def small_talk(domain: str, partition: Partition, rng: random.Random) -> SampleTurn:
    """One small-talk turn in the wording of its partition."""
    topic, user = rng.choice(WORDINGS[partition])
    reply, fact = _REPLIES[topic]
    return make_turn("none", domain, user, [], reply, [fact])
