"""The kinds of turns of the sample, one module a domain. A domain's `TEMPLATES` lists them, a frequent one twice."""

from envace.data.sample.turns import bank, calendar, contacts, inventory, orders, travel, weather
from envace.data.sample.turns.turn import Draw, Partition, SampleTurn

TEMPLATES = {
    "bank": bank.TEMPLATES,
    "calendar": calendar.TEMPLATES,
    "contacts": contacts.TEMPLATES,
    "inventory": inventory.TEMPLATES,
    "orders": orders.TEMPLATES,
    "travel": travel.TEMPLATES,
    "weather": weather.TEMPLATES,
}

__all__ = ["TEMPLATES", "Draw", "Partition", "SampleTurn"]
