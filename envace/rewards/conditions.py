"""Reads pass conditions that say nothing but what code can check; any word that it does not know makes it give up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from envace.files import canonical_json, compact_json
from envace.strict_json import NotStrictJsonError, parse_prefix
from envace.types import ToolCall


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that may be left once names, values and quotes are taken out. None of them negates, counts, orders or offers a
# choice, so a condition of these words can only ask that the thing named is there.
CALL_WORDS = _words(
    "a an the there is are exists exist assistant and of with for to tool call calls called function invocation "
    "makes made issues issued invokes invoked name named whose has having argument arguments parameter parameters "
    "equal equals"
)
RESULT_WORDS = _words("a the there is exists tool result response output of from equal equals to")
REPLY_WORDS = _words(
    "a the assistant reply response message contains contain includes include and both text string literal literally "
    "verbatim"
)
_HARMLESS = re.compile(r"\bfinal (?=(?:reply|response|message)\b)|\bas (?:a )?whole words?\b", re.IGNORECASE)
"""Words that are harmless in these places alone: elsewhere they ask for a position, or for nothing else."""
_CONTAINS = re.compile(r"\b(?:contains?|includes?)\b", re.IGNORECASE)
_IS = r"\s*(?:==?|:|\bequals\b|\b(?:is )?(?:equal|set) to\b|\bis\b)\s*"
_PREFIX = r"(?<![\w-])(?:(?:arguments?|args|parameters?)\.)?"
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|`([^`]+)`')


@dataclass(frozen=True, slots=True)
class CallCondition:
    """That a call of `tool_name` is made: with exactly the recorded arguments (`whole`), or with those in `stated`.

    `stated` gives arguments by name, their values as canonical JSON.
    """

    tool_name: str
    whole: bool
    stated: dict[str, str]


@dataclass(frozen=True, slots=True)
class ResultCondition:
    """That a tool answers exactly `content` (canonical JSON); which tool, where it is named."""

    tool_name: str | None
    content: str


def read_call_condition(text: str, recorded: ToolCall) -> CallCondition | None:
    """The condition that `recorded` fulfils, or None where the text says more, less clearly, or something else."""
    arguments = recorded.parsed()
    rest, value = _without_json(text)
    whole = value is not None and canonical_json(value) == canonical_json(arguments)
    if not whole:
        rest = text  # what looks like JSON may be the value of one argument
    stated: dict[str, str] = {}
    for key, wanted in {} if whole else arguments.items():
        shorter = _without_pair(rest, key, wanted)
        if shorter is not None:
            rest, stated[key] = shorter, canonical_json(wanted)
    named = _without_name(rest, recorded.tool_name)
    if named is None or not _only(named, CALL_WORDS):
        return None
    return CallCondition(recorded.tool_name, whole, stated)


def read_result_condition(text: str, recorded: Any, tool_names: Iterable[str]) -> ResultCondition | None:
    """The condition that the recorded result (decoded JSON) fulfils, or None as above."""
    rest, value = _without_json(text)
    if value is None or canonical_json(value) != canonical_json(recorded):
        return None
    for name in sorted(tool_names, key=len, reverse=True):
        named = None if name.lower() in RESULT_WORDS else _without_name(rest, name)
        if named is not None and _only(named, RESULT_WORDS):
            return ResultCondition(name, canonical_json(value))
    return ResultCondition(None, canonical_json(value)) if _only(rest, RESULT_WORDS) else None


def read_reply_condition(text: str) -> list[str] | None:
    """The quoted texts that the reply must contain, or None as above."""
    facts = [next(filter(None, match.groups())) for match in _QUOTED.finditer(text)]
    rest = _HARMLESS.sub(" ", _QUOTED.sub(" ", text))
    return facts if facts and _CONTAINS.search(rest) and _only(rest, REPLY_WORDS) else None


def _only(rest: str, words: frozenset[str]) -> bool:
    """Whether nothing is left but known words and plain punctuation."""
    return not re.sub(r"[A-Za-z]+|[\s.,;()]", "", rest) and set(re.findall("[a-z]+", rest.lower())) <= words


def _without_json(text: str) -> tuple[str, Any]:
    """The text without the first JSON object or array in it, and its value; None where there is none."""
    for match in re.finditer(r"[{\[]", text):
        try:
            value, end = parse_prefix(text, match.start())
        except NotStrictJsonError:
            continue
        return f"{text[: match.start()]} {text[end:]}", value
    return text, None


def _without_name(rest: str, name: str) -> str | None:
    """The text without the first mention of a tool's name, `name=` before it included; None where it is not named."""
    pattern = rf"(?:\bname{_IS})?(?P<q>[\"'`]?)(?<![\w.-]){re.escape(name)}(?![\w-])(?P=q)"
    match = re.search(pattern, rest)
    return None if match is None else f"{rest[: match.start()]} {rest[match.end() :]}"


def _without_pair(rest: str, key: str, value: Any) -> str | None:
    """The text without "key is value"; None where it does not say that."""
    for match in re.finditer(rf"{_PREFIX}(?P<q>[\"'`]?){re.escape(key)}(?P=q){_IS}", rest):
        for written in _spellings(value):
            tail = rest[match.end() + len(written) :]
            if rest.startswith(written, match.end()) and not re.match(r"\w|[.,'’-]\w", tail):
                return f"{rest[: match.start()]} {tail}"
    return None


def _spellings(value: Any) -> list[str]:
    """How a condition may write a value: as JSON; a text also between other quotes, or bare."""
    if not isinstance(value, str):
        return [compact_json(value), canonical_json(value)]
    bare = [value] if value.strip() else []
    return [compact_json(value), f"'{value}'", f"`{value}`", f"“{value}”", *bare]
