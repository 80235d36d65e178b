"""Untrusted text as one line of JSON that cannot end its block, forge a line of it, or hold a control token."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

# What is written as \uXXXX besides what JSON itself escapes: angle brackets (role tags, chat-template tokens, think and
# tool-call tags), the bracket of tokens such as [INST], C1 controls, other line ends, invisible and direction marks,
# tag characters and lone surrogates.
_RISKY = re.compile(
    "[<>\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\uffff"
    "\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff\ufe64\ufe65\uff1c\uff1e\uff5c"
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]"
    r"|\[(?=\s?[/|]?\s?[A-Za-z_]{2,40}[|]?\])"
)


def json_line(fields: Mapping[str, str | int]) -> str:
    """`fields` as JSON on one line, in their order. Decoding it gives them back exactly."""
    return _RISKY.sub(_escaped, json.dumps(fields, ensure_ascii=False, allow_nan=False))


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
