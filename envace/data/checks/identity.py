"""Checks 4 and 34 on one row: its id, and its size."""

from __future__ import annotations

import re

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)

_OUTSIDE = re.compile(r"^\.|[/\\\x00-\x1f\x7f]")
"""What could lead out of a folder, were the id used in a path."""


def check_uuid(row: Row) -> None:
    """4, without the comparison with other rows."""
    value = row.record.get("uuid")
    if not isinstance(value, str) or not value.strip():
        row.findings.add(4, "R", "/uuid", f"the uuid must be text, found {value!r}")
    elif _OUTSIDE.search(value):
        row.findings.add(4, "R", "/uuid", f"{value!a} has separators, control characters or a leading dot, like a path")
    elif not _UUID.fullmatch(value):
        row.findings.add(4, "W", "/uuid", f"{value!r} has not the shape of a UUID")


def check_row_size(row: Row) -> None:
    """34: bytes of the row's raw text."""
    if row.text_bytes > row.bounds.max_row_bytes:
        detail = f"the row has {row.text_bytes} bytes, more than {row.bounds.max_row_bytes}"
        row.findings.add(34, "R", "", detail)


def check_message_sizes(row: Row) -> None:
    """34: bytes of each message with its calls."""
    limit = row.bounds.max_message_bytes
    for index, message in enumerate(row.messages):
        texts = [message["content"], *(call["function"]["arguments"] for call in message["tool_calls"])]
        if 4 * sum(map(len, texts)) <= limit:  # UTF-8 takes at most four bytes a character
            continue
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        if size > limit:
            detail = f"the message has {size} bytes, more than {limit}"
            row.findings.add(34, "R", pointer("messages", index), detail)
