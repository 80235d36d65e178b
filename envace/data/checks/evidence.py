"""Checks 30 to 32: does evidence stand where it says, can gates be passed, do items look at something that is there."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from envace.data.checks.registry import NO_GATING_FLAG
from envace.data.checks.row import Message, Row
from envace.data.content import split_content

_SOURCE_ROLES = {
    "assistant.tool_calls": "assistant",
    "assistant.content.thinking": "assistant",
    "assistant.content.user_visible_reply": "assistant",
    "tool.content": "tool",
    "user.content": "user",
}


@dataclass
class EvidenceCount:
    """Snippets that were looked for, and those that were not found: what the run's bound on check 30 is about."""

    snippets: int = 0
    unlocated: int = 0


def check_evidence(row: Row, count: EvidenceCount) -> None:
    """30, 31 and 32 for every item of every variant. Needs well-formed messages and checklists."""
    turns = row.turns()
    texts = _Texts(row)
    for v, variant in enumerate(row.record["checklists"]):
        for t, items in enumerate(variant):
            place = f"/checklists/{v}/{t}"
            has_calls = any(row.messages[index]["tool_calls"] for index in turns[t])
            for n, item in enumerate(items):
                _check_item(row, turns, texts, item, f"{place}/{n}", count)
                if not has_calls and item["focus_on"] in ("assistant.tool_calls", "tool.content"):
                    detail = f"{item['id']} looks at {item['focus_on']} in a turn without calls"
                    row.findings.add(32, "W", f"{place}/{n}/focus_on", detail)
            if t < len(variant) - 1 and not any(item["required_for_next_turn"] for item in items):
                row.findings.add(31, "W", place, "no item of this turn gates the next one", flag=NO_GATING_FLAG)


class _Texts:
    """The texts of a row's messages that evidence may quote, each made and folded once."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._plain: dict[tuple[int, str], str] = {}
        self._folded: dict[tuple[int, str], str] = {}

    def hold(self, index: int, source: str, snippet: str) -> bool:
        """True where the message's part has the snippet, word for word or after folding."""
        key = (index, source)
        if key not in self._plain:
            self._plain[key] = _text(self._row.messages[index], source)
        if snippet in self._plain[key] and snippet.strip():
            return True
        if key not in self._folded:
            self._folded[key] = _folded(self._plain[key])
        folded = _folded(snippet)
        return bool(folded) and folded in self._folded[key]


def _check_item(
    row: Row, turns: list[list[int]], texts: _Texts, item: dict[str, Any], place: str, count: EvidenceCount
) -> None:
    if not item["evidence"]:
        row.findings.add(30, "W", f"{place}/evidence", f"{item['id']} has no evidence")
    rests_on_error = False
    for n, entry in enumerate(item["evidence"]):
        count.snippets += 1
        fault, index = _locate(row, turns, texts, entry)
        if fault:
            count.unlocated += 1
            row.findings.add(30, "W", f"{place}/evidence/{n}", fault)
        elif index in row.error_results:
            rests_on_error = True
    if rests_on_error and item["required_for_next_turn"]:
        row.findings.add(31, "W", place, f"{item['id']} gates the next turn but rests on a recorded tool error")


def _locate(row: Row, turns: list[list[int]], texts: _Texts, entry: dict[str, Any]) -> tuple[str | None, int | None]:
    """What is wrong with an entry (None: nothing), and the index of the message that it quotes."""
    turn, step, source = entry["turn"], entry["step"], entry["from"]
    if turn >= len(turns) or step >= len(turns[turn]):
        return f"turn {turn}, step {step} does not exist", None
    index = turns[turn][step]
    message = row.messages[index]
    if message["role"] != _SOURCE_ROLES[source]:
        return f"turn {turn}, step {step} is a {message['role']} message, not {source}", None
    if not texts.hold(index, source, entry["snippet"]):
        return f"the snippet is not in {source} of turn {turn}, step {step}: {entry['snippet']:.120}", None
    return None, index


def _text(message: Message, source: str) -> str:
    if source == "assistant.tool_calls":
        return json.dumps(message["tool_calls"], ensure_ascii=False)
    if message["role"] != "assistant":
        return message["content"]
    split = split_content(message["content"])
    return split.reasoning if source == "assistant.content.thinking" else split.reply


def _folded(text: str) -> str:
    """Text without what JSON encoding and line breaks add: white space, backslashes, `\\u` escapes."""
    if "\\" in text:
        text = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may be one character
        text = re.sub(r"\\+[nrt]|\\", "", text)
    return "".join(text.split())
