"""One turn of a sample conversation, and the helper that draws the values a turn is about."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from envace.data.sample.vocabulary import Pools
from envace.files import compact_json
from envace.types import ToolCall

Kind = Literal["single", "parallel", "chain", "chain_refuse", "refuse", "none", "error"]
Partition = Literal["train", "heldout", "hard"]
T = TypeVar("T")


@dataclass(frozen=True)
class SampleTurn:
    """One user message with its right answer.

    `steps` holds the calls of each assistant output before the reply, `facts` what the reply must say word for word.
    `tempting_call` is the call that a careless assistant would make although it is forbidden here.
    """

    kind: Kind
    domain: str
    user_message: str
    steps: tuple[tuple[ToolCall, ...], ...]
    reply: str
    facts: tuple[str, ...]
    forbidden_tools: tuple[str, ...]
    tempting_call: ToolCall | None
    offered_tools: tuple[str, ...]


def make_turn(
    kind: Kind,
    domain: str,
    user_message: str,
    steps: Sequence[Sequence[ToolCall]],
    reply: str,
    facts: Iterable[Any],
    offers: Iterable[str] = (),
    tempting_call: ToolCall | None = None,
) -> SampleTurn:
    """Put a turn together. It offers the tools that it calls, the tempting one, and those in `offers`."""
    forbidden = (tempting_call.tool_name,) if tempting_call else ()
    called = {call.tool_name for step in steps for call in step}
    return SampleTurn(
        kind=kind,
        domain=domain,
        user_message=user_message,
        steps=tuple(tuple(step) for step in steps),
        reply=reply,
        facts=tuple(dict.fromkeys(str(fact) for fact in facts)),
        forbidden_tools=forbidden,
        tempting_call=tempting_call,
        offered_tools=tuple(sorted(called | set(forbidden) | set(offers))),
    )


def call(tool_name: str, arguments: dict[str, Any]) -> ToolCall:
    """A call with its arguments as text."""
    return ToolCall(tool_name=tool_name, arguments=compact_json(arguments))


class Draw:
    """Draws values from one set of pools with one random generator."""

    def __init__(self, rng: random.Random, pools: Pools) -> None:
        self.rng = rng
        self.pools = pools

    def one_of(self, values: Sequence[T]) -> T:
        """One of `values`."""
        return self.rng.choice(values)

    def two_of(self, values: Sequence[T]) -> tuple[T, T]:
        """Two different ones of `values`."""
        first, second = self.rng.sample(values, 2)
        return first, second
