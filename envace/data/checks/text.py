"""Checks 8 to 11: blank content, think blocks, control tokens in the wrong place, characters that break files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer
from envace.data.content import OPEN, balanced, split_content
from envace.files import compact_json

CONTROL_TOKENS = re.compile(r"</?(?:think|tool_call|tool_response|tools)>|<\|[A-Za-z_]{2,30}\|>")
_NON_CHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
BROKEN_CHARACTERS = re.compile(f"[\x00\ud800-\udfff\ufdd0-\ufdef{_NON_CHARACTERS}]")
REPLACEMENT = "\ufffd"


def repair_results(row: Row) -> None:
    """11, for tool results: broken characters are replaced, since the world and not the annotator wrote them."""
    messages = row.record.get("messages")
    if not isinstance(messages, list):
        return
    for index, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) and message.get("role") == "tool" else None
        if not isinstance(content, str):
            continue
        repaired, count = BROKEN_CHARACTERS.subn(REPLACEMENT, content)
        if count:
            messages[index] = {**message, "content": repaired}
            place = pointer("messages", index, "content")
            row.findings.add(11, "W", place, f"{count} broken character(s) replaced by U+FFFD")


def check_characters(row: Row) -> None:
    """11, for all other text, keys included."""
    whole = compact_json(row.record)
    if not BROKEN_CHARACTERS.search(whole) and "\\u0000" not in whole:  # the encoder escapes NUL
        return
    for place, text in _texts(row.record):
        match = BROKEN_CHARACTERS.search(text)
        if match:
            detail = f"U+{ord(match.group()):04X} at character {match.start()}"
            row.findings.add(11, "R", pointer(*place), detail)


def _texts(record: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), record)]
    while pending:
        place, node = pending.pop()
        if isinstance(node, str):
            yield place, node
        elif isinstance(node, dict):
            for key, child in reversed(node.items()):
                pending.append(((*place, key), child))
                pending.append(((*place, key), key))
        elif isinstance(node, list):
            pending.extend(((*place, index), child) for index, child in reversed(list(enumerate(node))))


def check_texts(row: Row) -> None:
    """8, 9 and 10 for every message."""
    for index, message in enumerate(row.messages):
        content, place = message["content"], pointer("messages", index, "content")
        if message["role"] != "assistant":
            if not content.strip():
                row.findings.add(8, "R", place, f"the {message['role']} message is blank")
            token = CONTROL_TOKENS.search(content)
            if token:
                detail = f"control token {token.group()} in a {message['role']} message"
                row.findings.add(10, "R", place, detail)
            continue
        if not balanced(content):
            row.findings.add(9, "R", place, "think tags are not one block that is opened and then closed")
        elif OPEN not in content:
            row.findings.add(9, "W", place, "the assistant message has no think block")
        elif not split_content(content).reply and not message["tool_calls"]:
            row.findings.add(8, "R", place, "the assistant message has neither a reply nor calls")
        if not content.strip() and not message["tool_calls"]:
            row.findings.add(8, "R", place, "the assistant message is blank and calls nothing")
