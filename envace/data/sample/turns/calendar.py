"""Turns about the calendar: list a day (one day has no events), add an event, clear a day."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.world import World


def show_day(world: World, draw: Draw, day: str | None = None) -> SampleTurn:
    """What is on a day. A free day is a recorded error that the reply must understand."""
    day = day or draw.one_of(draw.pools.days)
    event = world.database.events.get(day)
    user = draw.one_of([f"What is on {day}?", f"Show my {day}."])
    steps, offers = [[call("list_events", {"day": day})]], ["add_event", "remove_event"]
    if event is None:
        return make_turn("error", "calendar", user, steps, f"{day} is free.", ["free"], offers)
    reply = f"{day}: {event['title']} at {event['hour']}."
    return make_turn("single", "calendar", user, steps, reply, [event["title"], event["hour"]], offers)


def add(world: World, draw: Draw) -> SampleTurn:
    """Add an event."""
    title, day = draw.one_of(draw.pools.titles), draw.one_of(draw.pools.days)
    hour = draw.one_of(range(8, 19))
    user = draw.one_of([f"Add {title} on {day} at {hour}.", f"Plan {title} for {day} at {hour}."])
    steps = [[call("add_event", {"title": title, "day": day, "hour": hour})]]
    reply = f"Added {title} on {day} at {hour}."
    return make_turn("single", "calendar", user, steps, reply, [title, day, hour], ["list_events"])


def clear_day(world: World, draw: Draw) -> SampleTurn:
    """Remove what is on a day: the id must be looked up first."""
    day = draw.one_of(draw.pools.days)
    event = world.database.events.get(day)
    if event is None:
        return show_day(world, draw, day)
    user = draw.one_of([f"Clear my {day}.", f"Remove what is on {day}."])
    steps = [[call("list_events", {"day": day})], [call("remove_event", {"event": event["event"]})]]
    return make_turn("chain", "calendar", user, steps, f"Removed {event['title']} on {day}.", [event["title"]])


TEMPLATES = (show_day, add, add, clear_day)
