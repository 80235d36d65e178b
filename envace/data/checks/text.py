"""Checks 8 to 11: blank content, think blocks, control tokens in the wrong place, characters that break files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envace.data.checks.registry import Severity
from envace.data.checks.row import Message, Row
from envace.data.checks.violation import pointer
from envace.data.checks.walk import texts
from envace.data.content import OPEN, balanced, split_content

CONTROL_TOKENS = re.compile(r"</?(?:think|tool_call|tool_response|tools)>|<\|[A-Za-z0-9_]{2,40}\|>")
_NON_CHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
BROKEN_CHARACTERS = re.compile(f"[\x00\ud800-\udfff\ufdd0-\ufdef{_NON_CHARACTERS}]")
_SUSPECT_BYTES = (b"\xef\xb7", b"\xbf\xbe", b"\xbf\xbf")
"""Parts of the UTF-8 of every non-character (and of some good ones): finding them is far quicker than a pattern."""
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
        if not _may_be_broken(content) and "\x00" not in content:
            continue
        repaired, count = BROKEN_CHARACTERS.subn(REPLACEMENT, content)
        if count:
            messages[index] = {**message, "content": repaired}
            place = pointer("messages", index, "content")
            row.findings.add(11, "W", place, f"{count} broken character(s) replaced by U+FFFD")


def check_characters(row: Row) -> None:
    """11, for all other text, keys included."""
    if not _may_be_broken(row.whole):
        return
    for place, text, _ in texts(row.record):
        match = BROKEN_CHARACTERS.search(text)
        if match:
            detail = f"U+{ord(match.group()):04X} at character {match.start()}"
            row.findings.add(11, "R", pointer(*place), detail)


def _may_be_broken(whole: str) -> bool:
    """A quick look at the JSON text: False only where no character can be broken (the encoder escapes NUL)."""
    if "\\u0000" in whole:
        return True
    if whole.isascii():
        return False
    try:
        encoded = whole.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return any(part in encoded for part in _SUSPECT_BYTES)


def check_texts(row: Row) -> None:
    """8, 9 and 10 for every message."""
    for index, message in enumerate(row.messages):
        check = _check_assistant if message["role"] == "assistant" else _check_other
        for check_id, severity, detail in check(message):
            row.findings.add(check_id, severity, pointer("messages", index, "content"), detail)


def _check_other(message: Message) -> Iterator[tuple[int, Severity, str]]:
    content, role = message["content"], message["role"]
    if not content.strip():
        yield 8, "R", f"the {role} message is blank"
    token = CONTROL_TOKENS.search(content) if "<" in content else None
    if token:
        yield 10, "R", f"control token {token.group()} in a {role} message"


def _check_assistant(message: Message) -> Iterator[tuple[int, Severity, str]]:
    content, has_calls = message["content"], bool(message["tool_calls"])
    if not balanced(content):
        yield 9, "R", "think tags are not one block that is opened and then closed"
    elif OPEN not in content:
        yield 9, "W", "the assistant message has no think block"
    elif not has_calls and not split_content(content).reply:
        yield 8, "R", "the assistant message has neither a reply nor calls"
    if not has_calls and not content.strip():
        yield 8, "R", "the assistant message is blank and calls nothing"
