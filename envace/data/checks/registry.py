"""The list of checks: number, what it looks at, its rule in words, how severe it may be, and the flag it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["R", "W", "F"]
SEVERITY_WORDS: dict[Severity, str] = {"R": "row rejected", "W": "kept and flagged", "F": "run failed"}


@dataclass(frozen=True)
class Check:
    """One rule of the contract. `flag` is what a warning of it puts on the task, in words that tables can hold."""

    id: int
    severities: str
    field: str
    rule: str
    flag: str = ""


_ALL = (
    Check(1, "F", "file", "parses, is UTF-8, is complete"),
    Check(2, "F", "table", "has rows, and only known columns after aliases"),
    Check(4, "RW", "uuid", "text, unique in all files (the first is kept); in the shape of a UUID (W)", "uuid_shape"),
    Check(5, "R", "row", "a strict JSON object: no NaN or infinity, no duplicate keys, at most 100 levels deep"),
    Check(
        6,
        "R",
        "messages",
        "a non-empty list; each with a known role, text content, and a list of well-formed calls or null",
    ),
    Check(
        7,
        "R",
        "messages",
        "role order: system only first, then user; results follow calls, the user follows a reply; the "
        "last is a reply without calls",
    ),
    Check(8, "R", "content", "not blank (an assistant with calls may have a blank reply)"),
    Check(9, "RW", "assistant content", "one think block, opened before it is closed (none: W)", "no_think_block"),
    Check(10, "R", "user, tool, system text", "no think, tool-call or chat-template control tokens"),
    Check(
        11,
        "RW",
        "any text",
        "no lone surrogates, NUL or non-characters (in tool results: repaired, W)",
        "text_repaired",
    ),
    Check(12, "R", "arguments", "JSON text of an object"),
    Check(13, "R", "call name", "declared among the row's tools"),
    Check(
        14,
        "RW",
        "arguments",
        "valid against the tool's schema: missing or undeclared R, wrong type or value W",
        "argument_mismatch",
    ),
    Check(
        15,
        "RW",
        "calls, results",
        "N calls are followed by exactly N results; call ids are unique (W)",
        "call_id_repeated",
    ),
    Check(16, "RW", "tool content", "a strict JSON object or array (a scalar: W)", "scalar_result"),
    Check(
        17,
        "WF",
        "tool content",
        "recorded errors are flagged; their share of all results is bounded (F)",
        "recorded_tool_error",
    ),
    Check(
        18,
        "W",
        "tool content",
        "a recorded error agrees with the declared schema of the valid call it answers",
        "error_contradicts_schema",
    ),
    Check(19, "W", "transitions", "the same call has the same result throughout the row", "stateful_or_inconsistent"),
    Check(20, "RW", "tools", "at least one; at most 64 (W)", "many_tools"),
    Check(21, "RW", "tools", "unique names; distinct also after folding case and `-`/`_` (W)", "similar_tool_names"),
    Check(
        22,
        "RW",
        "tools",
        "`parameters` is a JSON Schema of type object, `required` within its properties; plain name, a description (W)",
        "tool_wording",
    ),
    Check(24, "R", "checklists", "at least one variant; as many turns as user messages"),
    Check(25, "RW", "turn", "has items; at most 20 (W)", "many_items"),
    Check(
        26,
        "RW",
        "item",
        "required keys and types, question and condition not blank, known words; unknown keys W",
        "unknown_item_key",
    ),
    Check(27, "R", "item id", "not blank, unique in its turn"),
    Check(
        28,
        "RW",
        "weight",
        "above 0, at most 1; sums to 1 in a turn (within 0.05: divided by the sum, W)",
        "weights_renormalised",
    ),
    Check(
        29,
        "RW",
        "dependence",
        "ids of other items of the turn, no circle; they look at a tool result (else W)",
        "dependence_on_other",
    ),
    Check(
        30,
        "WF",
        "evidence",
        "there is some; its place exists, fits its source and holds the snippet; the share not found is bounded (F)",
        "evidence_unlocated",
    ),
    Check(31, "W", "gating", "a non-final turn has a gating item; none rests on a recorded error", "maybe_unreachable"),
    Check(32, "W", "focus", "no item about calls or results in a turn without calls", "focus_without_calls"),
    Check(34, "R", "size", "row and messages within their bounds of bytes"),
    Check(35, "R", "cross-row", "no exact duplicate in a file (tools and user messages); the first is kept"),
    Check(37, "F", "run", "in = kept + quarantined, each with a reason; the rejected share is bounded"),
)
CHECKS: dict[int, Check] = {check.id: check for check in _ALL}
NO_GATING_FLAG = "no_gating_item"
"""What check 31 leaves where a non-final turn has no gating item, which is another finding than an unreachable one."""
