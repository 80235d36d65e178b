"""Turns about money: balances, transfers, transfers over the limit, and transfers without an amount."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.world import World
from envace.types import ToolCall


def _transfer(sender: str, receiver: str, amount: int) -> ToolCall:
    return call("transfer", {"from": sender, "to": receiver, "amount": amount})


def one_balance(world: World, draw: Draw) -> SampleTurn:
    """The balance of one person."""
    name = draw.one_of(draw.pools.names)
    balance = world.database.balances[name]
    user = draw.one_of([f"How much does {name} have?", f"Balance of {name}?"])
    steps = [[call("get_balance", {"owner": name})]]
    return make_turn("single", "bank", user, steps, f"{name} has {balance}.", [balance], ["transfer"])


def two_balances(world: World, draw: Draw) -> SampleTurn:
    """The balances of two persons: two calls at once."""
    names = draw.two_of(draw.pools.names)
    balances = [world.database.balances[name] for name in names]
    first, second = names
    user = draw.one_of([f"Balance of {first} and {second}?", f"How much do {first} and {second} have?"])
    step = [call("get_balance", {"owner": name}) for name in names]
    reply = " ".join(f"{name} has {balance}." for name, balance in zip(names, balances, strict=True))
    return make_turn("parallel", "bank", user, [step], reply, balances, ["transfer"])


def send(world: World, draw: Draw) -> SampleTurn:
    """A transfer within the limit."""
    sender, receiver = draw.two_of(draw.pools.names)
    amount = draw.one_of(range(50, 501, 50))
    user = draw.one_of([f"Send {amount} from {sender} to {receiver}.", f"{sender} pays {amount} to {receiver}."])
    steps, reply = [[_transfer(sender, receiver, amount)]], f"Sent {amount} to {receiver}."
    return make_turn("single", "bank", user, steps, reply, [amount, receiver], ["get_balance"])


def send_too_much(world: World, draw: Draw) -> SampleTurn:
    """A transfer over the limit that the tool's description states: to be refused without a call."""
    sender, receiver = draw.two_of(draw.pools.names)
    amount = draw.one_of(range(550, 1000, 50))
    user = draw.one_of([f"Send {amount} from {sender} to {receiver}.", f"{sender} pays {amount} to {receiver}."])
    reply, tempting = f"I cannot send {amount}, the limit is 500.", _transfer(sender, receiver, amount)
    return make_turn("refuse", "bank", user, [], reply, ["cannot", 500], ["get_balance"], tempting)


def send_unsaid(world: World, draw: Draw) -> SampleTurn:
    """A transfer without an amount: to be asked back."""
    sender, receiver = draw.two_of(draw.pools.names)
    user = draw.one_of([f"Send money from {sender} to {receiver}.", f"{sender} pays {receiver}."])
    reply, tempting = f"How much should {sender} send?", _transfer(sender, receiver, 100)
    return make_turn("none", "bank", user, [], reply, ["How much"], ["get_balance"], tempting)


TEMPLATES = (one_balance, two_balances, send, send, send_too_much, send_unsaid)
