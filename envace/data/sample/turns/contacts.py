"""Turns about contacts: phone numbers, and messages that need the number first."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.vocabulary import MESSAGE_TEXTS
from envace.data.sample.world import World


def one_phone(world: World, draw: Draw) -> SampleTurn:
    """The number of one person."""
    name = draw.one_of(draw.pools.names)
    phone = world.database.phones[name]
    user = draw.one_of([f"Phone of {name}?", f"What is the number of {name}?"])
    steps = [[call("find_phone", {"name": name})]]
    return make_turn("single", "contacts", user, steps, f"The number of {name} is {phone}.", [phone], ["send_message"])


def two_phones(world: World, draw: Draw) -> SampleTurn:
    """The numbers of two persons: two calls at once."""
    names = draw.two_of(draw.pools.names)
    phones = [world.database.phones[name] for name in names]
    step = [call("find_phone", {"name": name}) for name in names]
    reply = " ".join(f"The number of {name} is {phone}." for name, phone in zip(names, phones, strict=True))
    user = f"Phone of {names[0]} and {names[1]}?"
    return make_turn("parallel", "contacts", user, [step], reply, phones, ["send_message"])


def tell(world: World, draw: Draw) -> SampleTurn:
    """Look the number up, then send a message to it."""
    name, text = draw.one_of(draw.pools.names), draw.one_of(MESSAGE_TEXTS)
    user = draw.one_of([f"Tell {name}: {text}.", f"Write to {name}: {text}."])
    sending = call("send_message", {"phone": world.database.phones[name], "text": text})
    steps = [[call("find_phone", {"name": name})], [sending]]
    return make_turn("chain", "contacts", user, steps, f"Told {name}: {text}.", [name, text])


TEMPLATES = (one_phone, tell, tell, two_phones)
