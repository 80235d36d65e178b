"""Turns about the weather: one city, two cities, and alerts."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.world import World


def one_city(world: World, draw: Draw) -> SampleTurn:
    """The weather of one city on one day."""
    city, day = draw.one_of(draw.pools.cities), draw.one_of(draw.pools.days)
    row = world.database.weather[city, day]
    asked = [f"Weather in {city} on {day}?", f"How is {city} on {day}?", f"Tell me the {day} weather in {city}."]
    steps = [[call("get_weather", {"city": city, "day": day})]]
    reply = f"{city}: {row['sky']}, {row['temp']} C."
    return make_turn("single", "weather", draw.one_of(asked), steps, reply, row.values(), ["get_alert"])


def two_cities(world: World, draw: Draw) -> SampleTurn:
    """The weather of two cities on one day: two calls at once."""
    cities, day = draw.two_of(draw.pools.cities), draw.one_of(draw.pools.days)
    rows = [world.database.weather[city, day] for city in cities]
    first, second = cities
    user = draw.one_of([f"Weather in {first} and {second} on {day}?", f"Compare {first} and {second} on {day}."])
    step = [call("get_weather", {"city": city, "day": day}) for city in cities]
    pairs = zip(cities, rows, strict=True)
    reply = " ".join(f"{city}: {row['sky']}, {row['temp']} C." for city, row in pairs)
    facts = [value for row in rows for value in row.values()]
    return make_turn("parallel", "weather", user, [step], reply, facts, ["get_alert"])


def one_alert(world: World, draw: Draw) -> SampleTurn:
    """The alert of one city."""
    city = draw.one_of(draw.pools.cities)
    alert = world.database.alerts[city]
    user = draw.one_of([f"Any alert in {city}?", f"Is there an alert for {city}?"])
    steps = [[call("get_alert", {"city": city})]]
    return make_turn("single", "weather", user, steps, f"Alert in {city}: {alert}.", [alert], ["get_weather"])


def two_alerts(world: World, draw: Draw) -> SampleTurn:
    """The alerts of two cities: two calls at once."""
    cities = draw.two_of(draw.pools.cities)
    alerts = [world.database.alerts[city] for city in cities]
    step = [call("get_alert", {"city": city}) for city in cities]
    reply = " ".join(f"Alert in {city}: {alert}." for city, alert in zip(cities, alerts, strict=True))
    user = f"Any alert in {cities[0]} and {cities[1]}?"
    return make_turn("parallel", "weather", user, [step], reply, alerts, ["get_weather"])


TEMPLATES = (one_city, one_city, two_cities, one_alert, two_alerts)
