"""The JSON Schema of one raw row, for people and editors. Its words come from `schema_names` and `aliases`.

It says what the shape of a row must be. What lies between the parts of a row (roles in order, calls that fit a tool's
schema, weights that sum to 1, evidence that is found) only the checks of `docs/data.md` can say.
"""

from __future__ import annotations

from typing import Any

from envace.data.aliases import DROPPED_ITEM_KEYS, FOCUS_ALIASES, ITEM_ALIASES, ROLE_ALIASES
from envace.data.checks.extras import SEED_LIMIT
from envace.data.checks.items import MAX_PLACE
from envace.data.schema_names import EVIDENCE_KEYS, FOCUS, ITEM_KEYS, MESSAGE_KEYS, ROLES, ROW_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
_NOT_BLANK = r"\S"


def raw_row_schema() -> Schema:
    """The schema (Draft 2020-12) of one row, documented other spellings included. A new dict on every call."""
    parts = {**_row_parts(), "checklist": {"$ref": "#/$defs/variant", "description": "Other spelling: one variant."}}
    return {
        "$schema": DIALECT,
        "title": "One row of EnvACE's raw format (CM2's schema)",
        "description": "A file is a JSON array of rows, or one row a line. The converted layout, with everything in "
        "`extra_info`, is read too but not described here.",
        "type": "object",
        "properties": {**{key: parts[key] for key in ROW_KEYS}, "checklist": parts["checklist"]},
        "required": ["uuid", "messages", "tools"],
        "anyOf": [{"required": ["checklists"]}, {"required": ["checklist"]}],
        "additionalProperties": False,
        "$defs": _definitions(),
    }


def _row_parts() -> Schema:
    return {
        "uuid": {"type": "string", "pattern": _NOT_BLANK, "description": "Unique in all files; best a UUID."},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/message"},
            "description": "`system` only first, then `user`; each call is followed by its `tool` message, in order; "
            "the last message is a reply of the assistant.",
        },
        "tools": {
            "anyOf": [
                {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/tool"}},
                {"type": "string", "contentMediaType": "application/json"},
            ],
            "description": "Key order is kept until the schemas reach a prompt. Other spelling: the list as JSON text.",
        },
        "checklists": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/variant"},
            "description": "Variants; CM2 uses one.",
        },
        "outcome": {"anyOf": [{"$ref": "#/$defs/outcome"}, {"type": "null"}]},
        "world": {"anyOf": [{"$ref": "#/$defs/world"}, {"type": "null"}]},
    }


def _definitions() -> Schema:
    return {
        "message": _message(),
        "call": _call(),
        "tool": {
            "anyOf": [
                _object({"type": {"const": "function"}, "function": {"$ref": "#/$defs/function"}}, ["function"]),
                {"$ref": "#/$defs/function", "description": "Other spelling: without the wrapper."},
            ]
        },
        "function": _function(),
        "variant": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
            "description": "A list of items for each user message, in order.",
        },
        "item": _item(),
        "evidence": _evidence(),
        "focus": {
            "enum": [*FOCUS, *FOCUS_ALIASES],
            "description": f"What is looked at. Other spellings: {_spellings(FOCUS_ALIASES)}.",
        },
        "outcome": _outcome(),
        "world": _world(),
    }


def _message() -> Schema:
    content = {
        "anyOf": [
            {"type": ["string", "null"]},
            _object({"thinking": {"type": ["string", "null"]}, "reply": {"type": ["string", "null"]}}, [], closed=True),
        ],
        "description": "Text; reasoning is one `<think>` block before the reply. Other spelling: thinking and reply "
        "apart. Null only beside calls.",
    }
    parts = {
        "role": {
            "enum": [*ROLES, *ROLE_ALIASES],
            "description": f"Other spelling: {_spellings(ROLE_ALIASES)}.",
        },
        "content": content,
        "tool_calls": {"type": ["array", "null"], "items": {"$ref": "#/$defs/call"}},
    }
    return {
        **_object({key: parts[key] for key in MESSAGE_KEYS}, ["role"]),
        "if": {"required": ["tool_calls"], "properties": {"tool_calls": {"type": "array", "minItems": 1}}},
        "then": {"properties": {"role": {"const": "assistant"}}},
        "else": {"required": ["content"], "properties": {"content": {"type": ["string", "object"]}}},
    }


def _call() -> Schema:
    arguments = {
        "type": ["string", "object"],
        "description": "JSON text of an object, valid against the tool's schema. Other spelling: the object itself.",
    }
    function = _object({"name": {"type": "string"}, "arguments": arguments}, ["name", "arguments"])
    return _object({"id": {"type": "string"}, "type": {"const": "function"}, "function": function}, ["function"])


def _function() -> Schema:
    parameters = {
        "anyOf": [{"const": {}}, {"$ref": DIALECT, "required": ["type"], "properties": {"type": {"const": "object"}}}],
        "type": "object",
        "description": "A JSON Schema of type object, or {} for a tool without arguments.",
    }
    name = {"type": "string", "minLength": 1, "description": "Best letters, digits, '_', '-' and '.' only."}
    described = {"description": "What the tool does, in words; a tool without them is flagged."}
    return _object({"name": name, "description": described, "parameters": parameters}, ["name"])


def _item() -> Schema:
    text, filled = {"type": "string"}, {"type": "string", "pattern": _NOT_BLANK}
    texts = {"type": "array", "items": text}
    parts = {
        "id": {**filled, "description": "Unique in its turn."},
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/evidence"}},
        "focus_on": {"$ref": "#/$defs/focus"},
        "question": filled,
        "pass_condition": filled,
        "failure_examples": texts,
        "required_for_next_turn": {"type": "boolean", "description": "True makes the item gating."},
        "dependence": {**texts, "description": "Ids of items of the same turn that look at tool results."},
        "weight": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "description": "The weights of a turn sum to 1.",
        },
    }
    spellings: dict[str, list[str]] = {}
    for alias, key in ITEM_ALIASES.items():
        parts[alias] = {**parts[key], "description": f"Other spelling of {key}."}
        spellings.setdefault(key, [key]).append(alias)
    dropped = {key: {"description": "Read and left out."} for key in DROPPED_ITEM_KEYS}
    made = _object({**{key: parts[key] for key in (*ITEM_KEYS, *ITEM_ALIASES)}, **dropped}, [])
    made["required"] = [key for key in ITEM_KEYS if key not in spellings]
    made["allOf"] = [{"anyOf": [{"required": [name]} for name in names]} for names in spellings.values()]
    return made


def _evidence() -> Schema:
    place = {"type": "integer", "minimum": 0, "exclusiveMaximum": MAX_PLACE}
    parts = {
        "turn": {**place, "description": "Which turn, from 0."},
        "step": {**place, "description": "Which message of the turn; the user message is 0."},
        "from": {"$ref": "#/$defs/focus"},
        "snippet": {"type": "string", "description": "What stands there, word for word."},
    }
    return _object({key: parts[key] for key in EVIDENCE_KEYS}, list(EVIDENCE_KEYS))


def _outcome() -> Schema:
    texts = {"type": "array", "items": {"type": "string", "pattern": _NOT_BLANK}}
    call = _object({"name": {"type": "string"}, "arguments": {"type": "object"}}, ["name", "arguments"], closed=True)
    turn = {
        "required_calls": {"type": "array", "items": call},
        "ordered": {"type": "boolean"},
        "forbidden_tools": texts,
        "required_facts": texts,
    }
    turns = {"type": "array", "items": _object(turn, ["required_calls", "required_facts"], closed=True)}
    made = _object({"turns": turns}, ["turns"], closed=True)
    return {**made, "description": "Ours, optional: what code can check, one entry a turn."}


def _world() -> Schema:
    seed = {"type": "integer", "minimum": -SEED_LIMIT, "exclusiveMaximum": SEED_LIMIT}
    parts = {"domain": {"type": "string", "pattern": _NOT_BLANK}, "seed": seed}
    made = _object(parts, list(parts), closed=True)
    return {**made, "description": "Ours, optional: the executable sample world that the row belongs to."}


def _object(properties: Schema, required: list[str], closed: bool = False) -> Schema:
    made: Schema = {"type": "object", "properties": properties, "required": required}
    return {**made, "additionalProperties": False} if closed else made


def _spellings(aliases: dict[str, str]) -> str:
    return ", ".join(f"`{alias}` for `{key}`" for alias, key in aliases.items())
