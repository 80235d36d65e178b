"""Turns about stock: look up, compare, restock, and reserve (or not, where nothing is left)."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.world import World


def _line(world: World, item: str) -> str:
    row = world.database.stock[item]
    return f"{item}: {row['stock']} left, price {row['price']}."


def one_item(world: World, draw: Draw) -> SampleTurn:
    """Stock and price of one item."""
    item = draw.one_of(draw.pools.items)
    user = draw.one_of([f"Is the {item} in stock?", f"What does the {item} cost?"])
    steps, facts = [[call("check_stock", {"item": item})]], world.database.stock[item].values()
    return make_turn("single", "inventory", user, steps, _line(world, item), facts, ["reserve"])


def two_items(world: World, draw: Draw) -> SampleTurn:
    """Stock and price of two items: two calls at once."""
    items = draw.two_of(draw.pools.items)
    user = draw.one_of([f"Stock of {items[0]} and {items[1]}?", f"Compare {items[0]} and {items[1]}."])
    step = [call("check_stock", {"item": item}) for item in items]
    facts = [value for item in items for value in world.database.stock[item].values()]
    reply = " ".join(_line(world, item) for item in items)
    return make_turn("parallel", "inventory", user, [step], reply, facts, ["reserve"])


def restock(world: World, draw: Draw) -> SampleTurn:
    """Order more of an item."""
    item, count = draw.one_of(draw.pools.items), draw.one_of(range(10, 60, 10))
    user = draw.one_of([f"Order {count} more of the {item}.", f"Restock {count} of {item}."])
    steps = [[call("restock", {"item": item, "count": count})]]
    return make_turn("single", "inventory", user, steps, f"Ordered {count} of {item}.", [count, item], ["check_stock"])


def reserve(world: World, draw: Draw) -> SampleTurn:
    """Reserve an item if the stock that was looked up allows it."""
    item, name = draw.one_of(draw.pools.items), draw.one_of(draw.pools.names)
    asked = [f"Reserve a {item} for {name} if it is in stock.", f"If there is a {item}, keep it for {name}."]
    user = draw.one_of(asked)
    first, reserving = [call("check_stock", {"item": item})], call("reserve", {"item": item, "customer": name})
    if world.database.stock[item]["stock"] == 0:
        reply = f"I cannot reserve it, no {item} left."
        return make_turn("chain_refuse", "inventory", user, [first], reply, ["cannot"], tempting_call=reserving)
    reply = f"Reserved a {item} for {name}."
    return make_turn("chain", "inventory", user, [first, [reserving]], reply, ["Reserved", name])


TEMPLATES = (one_item, two_items, reserve, reserve, restock)
