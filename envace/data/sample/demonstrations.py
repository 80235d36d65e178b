"""Demonstrations of both roles for the warm start of a small policy: right ones, and ones with systematic faults.

The faulty ones imitate what real demonstrations are like, so that reinforcement has something to remove; they are an
honest weak start and are called so wherever results are shown.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from envace.data.sample.catalogue import tool_spec
from envace.data.sample.conversations import Conversation, generate_conversations
from envace.data.sample.demonstration_faults import corrupt_answer, corrupt_result
from envace.data.sample.world import World
from envace.files import compact_json
from envace.types import ToolCall, ToolSpec


@dataclass(frozen=True)
class DemonstrationTurn:
    """One user message with what the assistant does: steps of (calls, their results as text), then a reply.

    A result may be malformed JSON in a faulty demonstration of the rehearse role.
    """

    user_message: str
    steps: tuple[tuple[tuple[ToolCall, ...], tuple[str, ...]], ...]
    reply: str


@dataclass(frozen=True)
class Demonstration:
    """One conversation to learn from. `act` and `rehearse` hold the same calls and replies.

    In `act` every result is what the world truly answers to the call before it. In `rehearse` results may be wrong.
    `faults` names the faults that were put in, in order; empty for a clean one.
    """

    tools: tuple[ToolSpec, ...]
    act: tuple[DemonstrationTurn, ...]
    rehearse: tuple[DemonstrationTurn, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class FaultRates:
    """Shares of turns with a random act fault, with their domain's dominant act fault, and of results with a fault."""

    act_random: float
    act_dominant: float
    result: float


def clean_demonstration(world: World, conversation: Conversation) -> Demonstration:
    """The right answer of a conversation, the same for both roles."""
    return faulty_demonstration(world, conversation, random.Random(0), act_random=0, act_dominant=0, result=0)


def faulty_demonstration(
    world: World, conversation: Conversation, rng: random.Random, act_random: float, act_dominant: float, result: float
) -> Demonstration:
    """A demonstration with faults at the given rates. Calls are wrong in both roles, results only in one."""
    act, rehearse, faults = [], [], []
    for turn in conversation.turns:
        steps, reply, fault = corrupt_answer(turn, rng, act_random, act_dominant)
        faults += [fault] if fault else []
        true_steps, imagined_steps = [], []
        for calls in steps:
            true_results, imagined_results = [], []
            for call in calls:
                true_result = compact_json(world.execute(call.tool_name, call.parsed()))
                imagined, fault = corrupt_result(world, call, true_result, rng, result)
                faults += [fault] if fault else []
                true_results.append(true_result)
                imagined_results.append(imagined)
            true_steps.append((calls, tuple(true_results)))
            imagined_steps.append((calls, tuple(imagined_results)))
        act.append(DemonstrationTurn(turn.user_message, tuple(true_steps), reply))
        rehearse.append(DemonstrationTurn(turn.user_message, tuple(imagined_steps), reply))
    tools = tuple(tool_spec(name) for name in conversation.tools)
    return Demonstration(tools, tuple(act), tuple(rehearse), tuple(faults))


def generate_demonstrations(
    world: World, count: int, seed: int, rates: FaultRates | None = None
) -> list[Demonstration]:
    """`count` demonstrations over different conversations of the training partition; clean where `rates` is None."""
    conversations = generate_conversations(world, count, seed, "train", purpose="demonstrations")
    if rates is None:
        return [clean_demonstration(world, c) for c in conversations]
    rng = random.Random(f"demonstration faults {seed}")
    return [
        faulty_demonstration(world, c, rng, rates.act_random, rates.act_dominant, rates.result) for c in conversations
    ]
