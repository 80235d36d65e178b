"""The list of checks: number, what it looks at, its rule, how severe it may be, the flag it leaves, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["R", "W", "F"]
SEVERITY_WORDS: dict[Severity, str] = {"R": "row rejected", "W": "kept and flagged", "F": "run failed"}


@dataclass(frozen=True)
class Check:
    """One rule of the contract. `flag` is what a warning of it puts on the task, in words that tables can hold.

    `advice` tells the owner of the data what to do about a finding.
    """

    id: int
    severities: str
    field: str
    rule: str
    advice: str
    flag: str = ""


_ALL = (
    Check(
        1,
        "F",
        "file",
        "parses, is UTF-8, is complete; its size and SHA-256 are those that fetch_data recorded",
        "Get the file again and run fetch_data.",
    ),
    Check(
        2,
        "F",
        "table",
        "the number of rows is within its bounds and not 0; only known columns after aliases",
        "Remove or rename unknown columns; set min_rows and max_rows to what you expect.",
    ),
    Check(
        3,
        "WF",
        "source",
        "repository, revision and licence are recorded, the licence is on the allow-list (hub: F, local files: W)",
        "State the licence under fetch_data, and add it to validate_data.licences if you may use it.",
    ),
    Check(
        4,
        "RW",
        "uuid",
        "text, unique in all files (the first is kept); in the shape of a UUID (W)",
        "Give every row an id of its own, best a UUID.",
        "uuid_shape",
    ),
    Check(
        5,
        "R",
        "row",
        "a strict JSON object: no NaN or infinity, no duplicate keys, at most 100 levels deep",
        "Write the row as one JSON object, by a JSON library that refuses NaN, each key once.",
    ),
    Check(
        6,
        "R",
        "messages",
        "a non-empty list; each with a known role, text content, and a list of well-formed calls or null",
        "Give each message role, content (text) and tool_calls (list or null).",
    ),
    Check(
        7,
        "R",
        "messages",
        "role order: system only first, then user; results follow calls, the user follows a reply; the "
        "last is a reply without calls",
        "Order the messages as a conversation that ends with a reply.",
    ),
    Check(
        8,
        "R",
        "content",
        "not blank (an assistant with calls may have a blank reply)",
        "Fill in the message or leave it out.",
    ),
    Check(
        9,
        "RW",
        "assistant content",
        "one think block, opened before it is closed (none: W)",
        "Put the reasoning into one <think>…</think> block before the reply.",
        "no_think_block",
    ),
    Check(
        10,
        "R",
        "user, tool, system text",
        "no think, tool-call or chat-template control tokens",
        "Remove the token: in a prompt it would end the message.",
    ),
    Check(
        11,
        "RW",
        "any text",
        "no lone surrogates, NUL or non-characters (in tool results: repaired, W)",
        "Remove the character, or replace it by U+FFFD.",
        "text_repaired",
    ),
    Check(12, "R", "arguments", "JSON text of an object", "Write the arguments as the JSON text of one object."),
    Check(
        13,
        "R",
        "call name",
        "declared among the row's tools",
        "Add the tool to the row's tools or correct the name.",
    ),
    Check(
        14,
        "RW",
        "arguments",
        "valid against the tool's schema: missing or undeclared R, wrong type or value W",
        "Correct the call, or the tool's schema.",
        "argument_mismatch",
    ),
    Check(
        15,
        "RW",
        "calls, results",
        "N calls are followed by exactly N results; call ids are unique (W)",
        "Give each call one tool message, straight after the calls and in their order.",
        "call_id_repeated",
    ),
    Check(
        16,
        "RW",
        "tool content",
        "a strict JSON object or array (a scalar: W)",
        "Record the result as a JSON object.",
        "scalar_result",
    ),
    Check(
        17,
        "WF",
        "tool content",
        "recorded errors are flagged; their share of all results is bounded (F)",
        "Nothing, if the error is meant; otherwise record the call again.",
        "recorded_tool_error",
    ),
    Check(
        18,
        "W",
        "tool content",
        "a recorded error agrees with the declared schema of the valid call it answers",
        "Correct the type in the schema, or record the call again.",
        "error_contradicts_schema",
    ),
    Check(
        19,
        "W",
        "transitions",
        "the same call of the same tool has the same result throughout the data",
        "Nothing, if the tool keeps state; otherwise record one result.",
        "stateful_or_inconsistent",
    ),
    Check(
        20,
        "RW",
        "tools",
        "at least one; more than max_tools: W",
        "Offer at least one tool in a row (a list, or its JSON text), and not more than a prompt holds.",
        "many_tools",
    ),
    Check(
        21,
        "RW",
        "tools",
        "unique names; distinct also after folding case and `-`/`_` (W)",
        "Rename or remove one of the tools.",
        "similar_tool_names",
    ),
    Check(
        22,
        "RW",
        "tools",
        "`parameters` is a JSON Schema of type object, `required` within its properties; plain name, a description (W)",
        "Correct the tool's schema, or describe the tool.",
        "tool_wording",
    ),
    Check(
        23,
        "W",
        "tools",
        "would load in the narrower tool models of CM2's and of EnvACE's public code (a flag for each)",
        "Nothing here; simplify the schema if you also train with that code.",
        "narrow_tools_cm2",
    ),
    Check(
        24,
        "R",
        "checklists",
        "at least one variant; as many turns as user messages",
        "Give each variant one list of items for each user message.",
    ),
    Check(
        25,
        "RW",
        "turn",
        "has items; more than max_items: W",
        "Write at least one item; join items that ask the same.",
        "many_items",
    ),
    Check(
        26,
        "RW",
        "item",
        "required keys and types, question and condition not blank, known words; unknown keys W",
        "Complete the item as docs/data.md shows.",
        "unknown_item_key",
    ),
    Check(27, "R", "item id", "not blank, unique in its turn", "Number the items of a turn."),
    Check(
        28,
        "RW",
        "weight",
        "above 0, at most 1; sums to 1 in a turn (nearly: divided by the sum, W)",
        "Give each item a number above 0 and let those of a turn sum to 1.",
        "weights_renormalised",
    ),
    Check(
        29,
        "RW",
        "dependence",
        "ids of other items of the turn, no circle; they look at a tool result (else W)",
        "Name items of the same turn that look at tool results.",
        "dependence_on_other",
    ),
    Check(
        30,
        "WF",
        "evidence",
        "there is some; its place exists, fits its source and holds the snippet; the share not found is bounded (F)",
        "Quote the message that turn and step name.",
        "evidence_unlocated",
    ),
    Check(
        31,
        "W",
        "gating",
        "a non-final turn has a gating item; none rests on a recorded error",
        "Choose a gating item that can be passed.",
        "maybe_unreachable",
    ),
    Check(
        32,
        "W",
        "focus",
        "no item about calls or results in a turn without calls",
        "Let the item look at the reply, or record the call.",
        "focus_without_calls",
    ),
    Check(
        33,
        "R",
        "length",
        "system message, tools and first user message within the prompt's budget, the whole reference within the "
        "model's length (an estimate from bytes; exact before training)",
        "Shorten the row, or raise max_prompt_tokens or max_reference_tokens if the model can take it.",
    ),
    Check(34, "R", "size", "row and messages within their bounds of bytes", "Shorten the row, or raise the bound."),
    Check(
        35,
        "RF",
        "cross-row",
        "no exact duplicate in a file (tools and user messages; the first is kept); none in two splits (F)",
        "Remove one of the two.",
    ),
    Check(
        36,
        "F",
        "splits",
        "every row in exactly one split by a hash of its content; sizes near the shares that were asked for",
        "Choose another salt, or raise max_share_error.",
    ),
    Check(
        37,
        "F",
        "run",
        "in = kept + quarantined, each with a reason; the rejected share is bounded",
        "Mend the rows in the quarantine, or raise max_rejected_share if they can be missed.",
    ),
    Check(
        38,
        "W",
        "drift",
        "means of turns, tools and items and the mix of what items look at stay near the accepted version's",
        "Look at what changed; if it is meant, `envace data accept` makes this version the one to compare with.",
    ),
    Check(
        39,
        "W",
        "secrets",
        "no text that looks like a key, and no e-mail address",
        "Replace it by a placeholder (for addresses: one at example.com); withdraw a key that was real.",
        "secret_like",
    ),
    Check(
        40,
        "RW",
        "outcome, world",
        "the two keys of ours have their shape where they are given (R); the outcome can be fulfilled (W)",
        "Complete them as docs/data.md shows, or leave them out; ask for nothing that the reference does not do.",
        "outcome_unreachable",
    ),
)
CHECKS: dict[int, Check] = {check.id: check for check in _ALL}
NO_GATING_FLAG = "no_gating_item"
"""What check 31 leaves where a non-final turn has no gating item, which is another finding than an unreachable one."""
