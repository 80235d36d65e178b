"""What the loop asks of a conversation. Two kinds keep it: as token ids (training), or as messages (chat endpoints)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envace.chat.layout import Item
from envace.chat.parser import ActOutput
from envace.rollout.asking import Ask
from envace.types import Output


@dataclass(frozen=True, slots=True)
class Acted:
    """One act output. `parsed` is None where it was cut by length: then nothing in it counts."""

    output: Output
    parsed: ActOutput | None


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """One rehearse output. `answer` is its text without reasoning, None where it was cut by length.

    `item` is what goes into the history for it.
    """

    output: Output
    answer: str | None
    item: Item


class Conversation(Protocol):
    """The history of one rollout, and the policy that goes on with it.

    `number` counts the rollout's outputs; it fixes the draws of one. Both askings raise Stop(CONTEXT_OVERFLOW) where
    the prompt is too long, and EngineError where the engine fails.
    """

    def user(self, text: str) -> None:
        """Append the next user message."""
        ...

    async def act(self, number: int) -> Acted:
        """Let the act role go on. A whole output is appended to the history."""
        ...

    async def rehearse(self, ask: Ask, number: int) -> Rehearsed:
        """Let the rehearse role answer a call of the latest act output. Nothing is appended."""
        ...

    def result(self, item: Item) -> None:
        """Append what answered the next call of the latest act output, or the output itself where it was broken."""
        ...
