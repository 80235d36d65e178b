"""Turns about travel: find and book flights and hotels. Booking needs an id that only the search gives."""

from __future__ import annotations

from envace.data.sample.turns.turn import Draw, SampleTurn, call, make_turn
from envace.data.sample.world import World


def find_flight(world: World, draw: Draw) -> SampleTurn:
    """A flight between two cities."""
    origin, target = draw.two_of(draw.pools.flight_cities)
    flight = world.database.flights[origin, target]
    user = draw.one_of([f"Flight from {origin} to {target}?", f"Find a flight from {origin} to {target}."])
    steps = [[call("search_flight", {"from": origin, "to": target})]]
    reply = f"Flight {flight['flight']} costs {flight['price']}."
    return make_turn("single", "travel", user, steps, reply, flight.values(), ["book_flight"])


def book_flight(world: World, draw: Draw) -> SampleTurn:
    """Search a flight, then book the one that was found."""
    origin, target = draw.two_of(draw.pools.flight_cities)
    name, flight = draw.one_of(draw.pools.names), world.database.flights[origin, target]["flight"]
    asked = [f"Book {name} from {origin} to {target}.", f"{name} flies from {origin} to {target}, please book."]
    searching = [call("search_flight", {"from": origin, "to": target})]
    booking = [call("book_flight", {"flight": flight, "passenger": name})]
    reply = f"Booked flight {flight} for {name}."
    return make_turn("chain", "travel", draw.one_of(asked), [searching, booking], reply, [flight, name])


def find_hotel(world: World, draw: Draw) -> SampleTurn:
    """A hotel in a city."""
    city = draw.one_of(draw.pools.cities)
    hotel = world.database.hotels[city]
    user = draw.one_of([f"Find a hotel in {city}.", f"Hotel in {city}?"])
    steps, reply = [[call("find_hotel", {"city": city})]], f"Hotel {hotel['hotel']} costs {hotel['price']}."
    return make_turn("single", "travel", user, steps, reply, hotel.values(), ["book_hotel"])


def book_hotel(world: World, draw: Draw) -> SampleTurn:
    """Find a hotel, then book it for some nights."""
    city, nights = draw.one_of(draw.pools.cities), draw.one_of([1, 2, 3, 4])
    hotel = world.database.hotels[city]["hotel"]
    asked = [f"Book a hotel in {city} for {nights} nights.", f"I stay {nights} nights in {city}, book a hotel."]
    finding, booking = [call("find_hotel", {"city": city})], [call("book_hotel", {"hotel": hotel, "nights": nights})]
    reply = f"Booked hotel {hotel} for {nights} nights."
    return make_turn("chain", "travel", draw.one_of(asked), [finding, booking], reply, [hotel, nights])


TEMPLATES = (find_flight, book_flight, book_flight, find_hotel, book_hotel)
