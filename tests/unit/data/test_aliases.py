"""Other spellings of the raw schema arrive as the one that the checks read."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envace.data.aliases import normalise_row
from envace.data.checks import Violation

RawRow = dict[str, Any]


def _as_others_write_it(row: RawRow) -> RawRow:
    other = deepcopy(row)
    for message in other["messages"]:
        if message["role"] == "tool":
            message["role"] = "observation"
        if message["role"] == "assistant":
            thinking, reply = message["content"].removeprefix("<think>\n").split("\n</think>")
            message["content"] = {"thinking": thinking, "reply": reply.strip()}
        for call in message["tool_calls"]:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        if not message["tool_calls"]:
            message["tool_calls"] = None
    other["tools"] = json.dumps([tool["function"] for tool in other["tools"]])
    (variant,) = other.pop("checklists")
    for item in (item for items in variant for item in items):
        item["strictness"] = item.pop("required_for_next_turn")
        item["depends_on"] = item.pop("dependence")
        item["extra_info"] = {"price_usd": 0.1}
        for holder, key in ((item, "focus_on"), *((entry, "from") for entry in item["evidence"])):
            holder[key] = holder[key].replace("assistant.content.user_visible_reply", "assistant.final_reply")
    other["checklist"] = variant
    return other


def test_all_aliases_together_give_the_same_row(clean_row: RawRow) -> None:
    assert json.dumps(normalise_row(_as_others_write_it(clean_row))) == json.dumps(normalise_row(clean_row))


def test_the_raw_schema_itself_is_left_as_it_is(clean_row: RawRow) -> None:
    before = deepcopy(clean_row)
    assert normalise_row(clean_row) == before == clean_row


def test_spellings_that_disagree_are_both_kept_for_a_check_to_name(clean_row: RawRow) -> None:
    item = clean_row["checklists"][0][0][0]
    item["strictness"] = not item["required_for_next_turn"]
    made = normalise_row(clean_row)["checklists"][0][0][0]
    assert made["required_for_next_turn"] is item["required_for_next_turn"] and "strictness" in made


def test_reasoning_beside_the_content_becomes_a_think_block(clean_row: RawRow) -> None:
    message = clean_row["messages"][-1]
    thinking, reply = message["content"].removeprefix("<think>\n").split("\n</think>\n\n")
    other = {**clean_row, "messages": [*clean_row["messages"][:-1], {**message, "content": reply}]}
    other["messages"][-1]["reasoning_content"] = thinking
    assert normalise_row(other) == normalise_row(clean_row)


def test_the_converted_layout_gives_the_same_row(clean_row: RawRow) -> None:
    converted = {
        "uuid": clean_row["uuid"],
        "messages": clean_row["messages"][:1],
        "checklists": clean_row["checklists"],
        "extra_info": {"messages": clean_row["messages"], "tools": json.dumps(clean_row["tools"]), "original_index": 3},
        "data_source": "cm2",
    }
    expected = {key: clean_row[key] for key in ("uuid", "messages", "tools", "checklists")}
    assert normalise_row(converted) == expected


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "function", "name", "arguments", "focus_on", "evidence"]),
            children,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
KEYS = ["uuid", "messages", "tools", "checklists", "checklist", "outcome", "extra_info"]


@given(row=st.dictionaries(st.sampled_from(KEYS), JSON_VALUES))
def test_no_shape_of_row_breaks_the_aliases_or_the_checks(
    found: Callable[[RawRow], list[Violation]], row: RawRow
) -> None:
    assert any(violation.severity == "R" for violation in found(row))
