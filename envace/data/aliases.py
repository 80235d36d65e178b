"""Other spellings of the raw schema, turned into the one that the checks read (data specification, section 2).

Nothing here judges: a part that has not the expected shape is left as it is, for a check to name.
"""

from __future__ import annotations

from typing import Any

from envace.data.content import CLOSE, OPEN
from envace.data.schema_names import ITEM_KEYS, MESSAGE_KEYS, ROW_KEYS
from envace.files import compact_json
from envace.strict_json import NotStrictJsonError, parse_strict

ROLE_ALIASES = {"observation": "tool"}
ITEM_ALIASES = {
    "strictness": "required_for_next_turn",
    "must_pass_to_continue": "required_for_next_turn",
    "dependency": "dependence",
    "depends_on": "dependence",
}
FOCUS_ALIASES = {"assistant.final_reply": "assistant.content.user_visible_reply"}
DROPPED_ITEM_KEYS = ("extra_info",)
DROPPED_EXTRA_KEYS = ("interaction_kwargs", "need_tools_kwargs", "original_index")
"""Of the converted layout's `extra_info`: what repeats the checklists, or is about how another trainer runs them."""
_CONVERTED_KEYS = ("extra_info", "data_source")


def normalise_row(raw: dict[str, Any]) -> dict[str, Any]:
    """A new row in the raw schema, keys in its order. Unknown keys are kept, behind the known ones."""
    row = _from_converted_layout(raw)
    if "checklists" not in row and "checklist" in row:
        row["checklists"] = [row.pop("checklist")]
    if isinstance(row.get("messages"), list):
        row["messages"] = [_message(message) for message in row["messages"]]
    if "tools" in row:
        row["tools"] = _tools(row["tools"])
    if isinstance(row.get("checklists"), list):
        row["checklists"] = _nested(row["checklists"], depth=2)
    return _in_order(row, ROW_KEYS)


def _from_converted_layout(raw: dict[str, Any]) -> dict[str, Any]:
    """The converted layout holds all messages and the tools inside `extra_info`; unknown keys stay in there."""
    extra = raw.get("extra_info")
    if not isinstance(extra, dict) or "messages" not in extra:
        return dict(raw)
    row = {key: value for key, value in raw.items() if key not in _CONVERTED_KEYS}
    row["messages"] = _unpacked(extra["messages"])
    row["tools"] = extra.get("tools", raw.get("tools"))
    unknown = {k: v for k, v in extra.items() if k not in ("messages", "tools", *DROPPED_EXTRA_KEYS)}
    return {**row, "extra_info": unknown} if unknown else row


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    made = dict(message)
    role = made.get("role")
    if isinstance(role, str):
        made["role"] = ROLE_ALIASES.get(role, role)
    content = made.get("content")
    if isinstance(content, dict) and set(content) <= {"thinking", "reply"}:
        made["content"] = _content_text(content)
    elif content is None and made.get("tool_calls"):
        made["content"] = content = ""
    thinking = made.get("reasoning_content")
    if role == "assistant" and isinstance(content, str) and isinstance(thinking, str) and OPEN not in content:
        made["content"] = _content_text({"thinking": thinking, "reply": content})
        del made["reasoning_content"]
    if made.get("tool_calls") is None:
        made["tool_calls"] = []
    if isinstance(made["tool_calls"], list):
        made["tool_calls"] = [_call(call) for call in made["tool_calls"]]
    return _in_order(made, MESSAGE_KEYS)


def _content_text(content: dict[str, Any]) -> Any:
    thinking, reply = content.get("thinking") or "", content.get("reply") or ""
    if not isinstance(thinking, str) or not isinstance(reply, str):
        return content
    block = f"{OPEN}\n{thinking}\n{CLOSE}" if thinking else ""
    return block + ("\n\n" if block and reply else "") + reply


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), dict):
        return call
    return {**call, "function": {**function, "arguments": compact_json(function["arguments"])}}


def _unpacked(value: Any) -> Any:
    """What JSON text says; anything else as it is."""
    try:
        return parse_strict(value) if isinstance(value, str) else value
    except NotStrictJsonError:
        return value


def _tools(tools: Any) -> Any:
    tools = _unpacked(tools)
    if not isinstance(tools, list):
        return tools
    return [_wrapped(tool) for tool in tools]


def _wrapped(tool: Any) -> Any:
    if isinstance(tool, dict) and "function" not in tool and "name" in tool:
        return {"type": "function", "function": tool}
    return tool


def _nested(value: Any, depth: int) -> Any:
    """Variants hold turns, turns hold items."""
    if not isinstance(value, list):
        return value
    return [_nested(child, depth - 1) if depth else _item(child) for child in value]


def _item(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    made: dict[str, Any] = {}
    for key, value in item.items():
        if key not in DROPPED_ITEM_KEYS:
            name = str(ITEM_ALIASES.get(key, key))
            # two spellings that disagree: the second stays as it is, for check 26 to name
            made.setdefault(name if made.get(name, value) == value else key, value)
    if "focus_on" in made:
        made["focus_on"] = _focus(made["focus_on"])
    if isinstance(made.get("evidence"), list):
        made["evidence"] = [
            {**entry, "from": _focus(entry["from"])} if isinstance(entry, dict) and "from" in entry else entry
            for entry in made["evidence"]
        ]
    return _in_order(made, ITEM_KEYS)


def _focus(value: Any) -> Any:
    return FOCUS_ALIASES.get(value, value) if isinstance(value, str) else value


def _in_order(value: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    known = {key: value[key] for key in keys if key in value}
    return {**known, **{key: child for key, child in value.items() if key not in known}}
