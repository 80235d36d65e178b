"""Indented JSON as CM2's file has it. Python's own encoder gives the same text, more slowly."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

INDENT = "    "


def pretty_json(value: Any, depth: int = 0) -> str:
    """What `json.dumps(value, indent=4, ensure_ascii=False)` gives, for a value that stands `depth` levels deep.

    Keys must be text. Raises ValueError for NaN and infinities.
    """
    return _pretty(value, "\n" + INDENT * depth)


def _pretty(value: Any, line: str) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if not value or not isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    inner = line + INDENT
    if isinstance(value, dict):
        parts = [f"{encode_basestring(key)}: {_pretty(child, inner)}" for key, child in value.items()]
        return "{" + inner + ("," + inner).join(parts) + line + "}"
    return "[" + inner + ("," + inner).join([_pretty(child, inner) for child in value]) + line + "]"
