"""Seeded faults for a few training rows, so that validation and quarantine have something real to show."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class RowFault:
    """One kind of fault. `spoil` changes a record in place and says whether it could; `check_id` must find it."""

    name: str
    check_id: int
    spoil: Callable[[Record, Record], bool]


def _first_call(record: Record) -> dict[str, Any] | None:
    calls = [call for message in record["messages"] for call in message["tool_calls"]]
    return calls[0]["function"] if calls else None


def _repeat_uuid(record: Record, other: Record) -> bool:
    record["uuid"] = other["uuid"]
    return True


def _repeat_row(record: Record, other: Record) -> bool:
    record.update({key: deepcopy(value) for key, value in other.items() if key != "uuid"})
    return True


def _reply_missing(record: Record, _: Record) -> bool:
    record["messages"].pop()
    return True


def _blank_user_message(record: Record, _: Record) -> bool:
    record["messages"][0]["content"] = "  "
    return True


def _think_block_open(record: Record, _: Record) -> bool:
    last = record["messages"][-1]
    last["content"] = last["content"].replace("</think>", "")
    return True


def _arguments_cut(record: Record, _: Record) -> bool:
    function = _first_call(record)
    if function:
        function["arguments"] = function["arguments"][:-1]
    return function is not None


def _argument_missing(record: Record, _: Record) -> bool:
    function = _first_call(record)
    if function:
        function["arguments"] = "{}"
    return function is not None


def _tool_undeclared(record: Record, _: Record) -> bool:
    function = _first_call(record)
    if function:
        function["name"] += "_v2"
    return function is not None


def _result_missing(record: Record, _: Record) -> bool:
    messages = record["messages"]
    for position, message in enumerate(messages):
        if len(message["tool_calls"]) > 1:
            del messages[position + 1]
            return True
    return False


def _result_cut(record: Record, _: Record) -> bool:
    for message in record["messages"]:
        if message["role"] == "tool":
            message["content"] = message["content"][:-1]
            return True
    return False


def _tool_twice(record: Record, _: Record) -> bool:
    record["tools"].append(deepcopy(record["tools"][0]))
    return True


def _weights_off(record: Record, _: Record) -> bool:
    item = record["checklists"][0][0][0]
    item["weight"] = round(item["weight"] / 2, 4)
    return item["weight"] >= 0.1


def _schema_broken(record: Record, _: Record) -> bool:
    parameters = record["tools"][0]["function"]["parameters"]
    parameters["required"] = [*parameters.get("required", []), "unknown"]
    return True


def _dependence_circle(record: Record, _: Record) -> bool:
    for items in record["checklists"][0]:
        about_results = [item for item in items if item["focus_on"] == "tool.content"]
        if len(about_results) > 1:
            first, second = about_results[:2]
            first["dependence"], second["dependence"] = [second["id"]], [first["id"]]
            return True
    return False


ROW_FAULTS: tuple[RowFault, ...] = (
    RowFault("duplicate tool", 21, _tool_twice),
    RowFault("row repeated under another uuid", 35, _repeat_row),
    RowFault("result is not JSON", 16, _result_cut),
    RowFault("reply missing at the end", 7, _reply_missing),
    RowFault("call without a result", 15, _result_missing),
    RowFault("call of an undeclared tool", 13, _tool_undeclared),
    RowFault("arguments cut short", 12, _arguments_cut),
    RowFault("required argument missing", 14, _argument_missing),
    RowFault("weights do not sum to 1", 28, _weights_off),
    RowFault("uuid used twice", 4, _repeat_uuid),
    RowFault("blank user message", 8, _blank_user_message),
    RowFault("think block not closed", 9, _think_block_open),
    RowFault("required argument not declared", 22, _schema_broken),
    RowFault("items depend on each other", 29, _dependence_circle),
)
"""Used in turn. A new kind goes to the end, so that the rows that were spoiled before stay the same."""


def spoil_rows(records: list[Record], share: float, seed: int) -> dict[int, RowFault]:
    """Put a fault into `share` of the records, in place, kinds in turn. Gives the faults by position.

    The first row stays right: the rows that repeat another one repeat it.
    """
    rng = random.Random(f"row faults {seed}")
    faults: dict[int, RowFault] = {}
    unused = rng.sample(range(1, len(records)), len(records) - 1)
    for number in range(round(share * len(records))):
        fault = ROW_FAULTS[number % len(ROW_FAULTS)]
        for position in unused:
            spoiled = deepcopy(records[position])
            if fault.spoil(spoiled, records[0]):
                records[position], faults[position] = spoiled, fault
                unused.remove(position)
                break
    return faults
