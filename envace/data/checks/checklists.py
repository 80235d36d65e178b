"""Checks 24 to 29: the checklist's shape, its items, their ids, weights and dependences."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from envace.data.checks.items import check_item
from envace.data.checks.row import Row
from envace.data.checks.violation import pointer


def check_checklists(row: Row, user_messages: int | None) -> None:
    """24 to 29 for every variant. `user_messages` is None where the messages cannot be read."""
    variants = row.record.get("checklists")
    if not isinstance(variants, list) or not variants:
        row.findings.add(24, "R", "/checklists", "a row needs a list with at least one checklist")
        return
    for number, variant in enumerate(variants):
        place = pointer("checklists", number)
        if not isinstance(variant, list):
            row.findings.add(24, "R", place, "a checklist must be a list of turns")
            continue
        if user_messages is not None and len(variant) != user_messages:
            row.findings.add(24, "R", place, f"{len(variant)} turns of items for {user_messages} user messages")
        for index, items in enumerate(variant):
            _check_turn(row, items, f"{place}/{index}")


def _check_turn(row: Row, items: Any, place: str) -> None:
    if not isinstance(items, list) or not items:
        row.findings.add(25, "R", place, "the turn has no items")
        return
    if len(items) > row.bounds.max_items:
        detail = f"{len(items)} items; more than {row.bounds.max_items} are rarely worth judging"
        row.findings.add(25, "W", place, detail)
    if all([check_item(row.findings, item, f"{place}/{index}") for index, item in enumerate(items)]):
        _check_ids(row, items, place)
        _check_weights(row, items, place)
        _check_dependences(row, items, place)


def _check_ids(row: Row, items: list[dict[str, Any]], place: str) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        item_id = item["id"]
        if not item_id.strip():
            row.findings.add(27, "R", f"{place}/{index}/id", "the id is blank")
        elif item_id in seen:
            row.findings.add(27, "R", f"{place}/{index}/id", f"the id {item_id!r} stands twice in this turn")
        seen.add(item_id)


def _check_weights(row: Row, items: list[dict[str, Any]], place: str) -> None:
    faulty, total = False, 0.0
    for index, item in enumerate(items):
        weight = item["weight"]
        if type(weight) not in (int, float) or not 0 < weight <= 1:  # a bool is no number here
            row.findings.add(28, "R", f"{place}/{index}/weight", f"the weight must be above 0, at most 1: {weight!r}")
            faulty = True
        else:
            total += weight
    off = abs(total - 1)
    if faulty or off <= row.bounds.weight_tolerance:
        return
    if off > row.bounds.weight_repairable:
        row.findings.add(28, "R", place, f"the weights sum to {total:.4f}, not 1")
    else:
        row.findings.add(28, "W", place, f"the weights sum to {total:.4f}; divided by that")


def _check_dependences(row: Row, items: list[dict[str, Any]], place: str) -> None:
    if not any(item["dependence"] for item in items):
        return
    by_id = {item["id"]: item for item in items}
    for index, item in enumerate(items):
        for position, needed in enumerate(item["dependence"]):
            where = f"{place}/{index}/dependence/{position}"
            if needed == item["id"]:
                row.findings.add(29, "R", where, f"{needed!r} depends on itself")
            elif needed not in by_id:
                row.findings.add(29, "R", where, f"{needed!r} is no item of this turn")
            elif by_id[needed]["focus_on"] != "tool.content":
                row.findings.add(29, "W", where, f"{needed!r} does not look at a tool result")
    edges = {item["id"]: [n for n in item["dependence"] if n in by_id and n != item["id"]] for item in items}
    if not any(edges[needed] for needs in edges.values() for needed in needs):
        return  # nothing that is needed needs anything
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        row.findings.add(29, "R", place, f"items depend on each other in a circle: {', '.join(error.args[1])}")
