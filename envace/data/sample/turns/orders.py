"""Turns about orders: find, cancel (or refuse to), return and track."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.vocabulary import RETURN_REASONS
from envace.data.sample.world import World
from envace.types import ToolCall


def _find_call(name: str) -> ToolCall:
    return call("find_order", {"customer": name})


def find(world: World, draw: Draw, name: str | None = None) -> SampleTurn:
    """Look an order up. A person without one is a recorded error that the reply must understand."""
    name = name or draw.one_of(draw.pools.names)
    order = world.database.orders.get(name)
    user = draw.one_of([f"What did {name} order?", f"Show the order of {name}.", f"Find the order of {name}."])
    steps, offers = [[_find_call(name)]], ["cancel_order"]
    if order is None:
        return make_turn("error", "orders", user, steps, f"{name} has no order.", ["no order"], offers)
    reply = f"Order {order['order']}: {order['item']}, {order['status']}."
    return make_turn("single", "orders", user, steps, reply, order.values(), offers)


def cancel(world: World, draw: Draw) -> SampleTurn:
    """Cancel an open order; a shipped one must be left alone."""
    name = draw.one_of(draw.pools.names)
    order = world.database.orders.get(name)
    if order is None:
        return find(world, draw, name)
    asked = [f"Cancel the order of {name}.", f"{name} wants to cancel.", f"Please cancel what {name} ordered."]
    user = draw.one_of(asked)
    number, cancelling = order["order"], call("cancel_order", {"order": order["order"]})
    first = [_find_call(name)]
    if order["status"] == "shipped":
        reply = f"Order {number} is shipped, I cannot cancel it."
        return make_turn("chain_refuse", "orders", user, [first], reply, [number, "cannot"], tempting_call=cancelling)
    reply = f"Order {number} is cancelled."
    return make_turn("chain", "orders", user, [first, [cancelling]], reply, [number, "cancelled"])


def send_back(world: World, draw: Draw) -> SampleTurn:
    """Return an order for a reason."""
    name, reason = draw.one_of(draw.pools.names), draw.one_of(RETURN_REASONS)
    order = world.database.orders.get(name)
    if order is None:
        return find(world, draw, name)
    user = draw.one_of([f"Return the order of {name}, it is {reason}.", f"{name} returns the order: {reason}."])
    number = order["order"]
    steps = [[_find_call(name)], [call("return_order", {"order": number, "reason": reason})]]
    return make_turn("chain", "orders", user, steps, f"Order {number} is returned.", [number, "returned"])


def track(world: World, draw: Draw) -> SampleTurn:
    """Say where the parcel of an order is."""
    name = draw.one_of(draw.pools.names)
    order = world.database.orders.get(name)
    if order is None:
        return find(world, draw, name)
    user = draw.one_of([f"Where is the parcel of {name}?", f"Track the order of {name}."])
    number, place = order["order"], world.database.parcel_places[order["order"]]
    steps = [[_find_call(name)], [call("track_order", {"order": number})]]
    return make_turn("chain", "orders", user, steps, f"Order {number} is in {place}.", [number, place])


TEMPLATES = (find, cancel, cancel, send_back, track)
