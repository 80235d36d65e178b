"""The words of large rows: what each tool does in full sentences, what its arguments mean, and system messages.

All of it is true of the sample world (`handlers.py`); the names and types come from the catalogue.
"""

from __future__ import annotations

DETAILS: dict[str, str] = {
    "find_order": "Answers with the order's id, the item and whether it is open or shipped; one for each customer.",
    "cancel_order": "Works only while the order is open; a shipped order cannot be cancelled. Needs the order's id.",
    "return_order": "Notes that the order comes back, and why. Needs the order's id, which find_order gives.",
    "track_order": "Answers with the city in which the parcel was last seen. Needs the order's id, not the customer.",
    "get_weather": "Answers with the sky in one word and the temperature in degrees Celsius, for one city and one day.",
    "get_alert": "Answers with the warning that is in force for the city (storm, heat or flood), or with none.",
    "get_balance": "Answers with the money on the account of one person, a whole number without a currency.",
    "transfer": "Amounts above the limit are refused by the bank, so do not even try. Both persons need an account.",
    "list_events": "Answers with the id, the title and the hour of what is planned; an error if the day is free.",
    "add_event": "Puts a new event into the calendar. Nothing that is there already is moved or removed.",
    "remove_event": "Takes one event out of the calendar. Needs the event's id, which list_events gives for a day.",
    "check_stock": "Answers with how many pieces are left and the price of one. Zero means that it is sold out.",
    "reserve": "Keeps one piece for a customer. Fails when nothing is left, so look at the stock first.",
    "restock": "Orders pieces from the supplier. Says how many were ordered; they do not arrive at once.",
    "search_flight": "Answers with the id and the price of the direct flight, or with an error if there is none.",
    "book_flight": "Books one seat. Needs the flight's id, which search_flight gives, and the passenger's name.",
    "find_hotel": "Answers with the id of the hotel in the city and its price for one night.",
    "book_hotel": "Books one room from today on. Needs the hotel's id, which find_hotel gives, not the city.",
    "find_phone": "Answers with the short number under which the person can be reached by message.",
    "send_message": "Sends the text as it is. Needs the number, which find_phone gives; a name is not enough.",
}
ARGUMENTS: dict[str, str] = {
    "amount": "How much, a whole number above zero",
    "city": "Name of the city as people write it there",
    "count": "How many pieces, a whole number",
    "customer": "First name of the customer",
    "day": "Day of this week, its English name",
    "event": "Id of the event: a letter and two digits",
    "flight": "Id of the flight: a letter and two digits",
    "from": "Where it comes from: a person or a city",
    "hotel": "Id of the hotel: a letter and two digits",
    "hour": "Full hour of the day, from 0 to 23",
    "item": "Name of the thing, in the singular",
    "name": "First name of the person",
    "nights": "How many nights, a whole number",
    "order": "Id of the order: a letter and two digits",
    "owner": "First name of the account's owner",
    "passenger": "First name of the person who flies",
    "phone": "Short number: a letter and two digits",
    "reason": "Why it comes back, in a few words",
    "text": "What the message says, word for word",
    "title": "What the event is called",
    "to": "Where it goes to: a person or a city",
}
SYSTEM_MESSAGES: tuple[str, ...] = (
    "You are the assistant of a small office. You look after orders, stock, travel, the calendar, messages and money.\n"
    "Use the tools for everything that only they can know; never invent an id, a price or a number.\n"
    "When one tool needs what another one answers, call them one after the other. When two questions are independent, "
    "ask both at once. If something is not allowed or not possible, say so and make no call for it.\n"
    "Keep the reply short: say what was found or done, with the ids and numbers, and nothing else.",
    "You help people with everyday errands and have tools for them.\n"
    "1. Read the whole message before you act. 2. Make only the calls that the message asks for. 3. Take the values of "
    "arguments from the message or from earlier results, never from memory. 4. A tool may answer with an error: then "
    "tell the user what it means. 5. If a value is missing, ask for it instead of guessing.\n"
    "Limits that a tool's description states hold for everybody. Answer in one or two sentences.",
    "This is the service desk. Requests come in as short messages, one after the other, often about the same matter.\n"
    "Think first, then call the tools that are needed, then reply in plain words. Every fact of the reply stands in "
    "a result or in the message. Do not call a tool to be polite, and do not repeat a call whose answer you have.\n"
    "Refuse what the rules forbid, kindly and without trying it. Small talk needs no tool.",
)
