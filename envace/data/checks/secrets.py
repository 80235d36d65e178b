"""Check 39: text that looks like a key, and e-mail addresses. Findings name kind and place, never the value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer
from envace.data.checks.walk import Place, texts

MAX_FINDINGS = 3
"""Findings of a row. One is enough to look at it; thousands of addresses would hide what other checks found."""


@dataclass(frozen=True)
class Kind:
    """What one kind of secret looks like."""

    name: str
    pattern: re.Pattern[str]


def _kind(name: str, pattern: str) -> Kind:
    return Kind(name, re.compile(pattern))


# Every repetition is bounded, so that no text can make a search slow; `_begins` looks at what stands before a match.
KEYS: tuple[Kind, ...] = (
    _kind("a private key", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY"),
    _kind("an access key of Amazon's cloud", r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _kind("a key of Google's cloud", r"AIza[\w-]{35}(?![\w-])"),
    _kind("a storage key of Azure", r"AccountKey=[A-Za-z0-9+/]{80}"),
    _kind("a token of GitHub", r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{50}"),
    _kind("a token of GitLab", r"glpat-[\w-]{20}"),
    _kind("a token of Slack", r"xox[abeoprs]-(?=[A-Za-z0-9-]{0,40}\d)[A-Za-z0-9-]{10}"),
    _kind("a token of Hugging Face", r"hf_[A-Za-z0-9]{30}"),
    _kind("a key of OpenAI's form", r"sk-(?=[\w-]{0,40}?[A-Za-z0-9]{16})(?=[\w-]{0,60}\d)[\w-]{20}"),
    _kind("a key of Stripe", r"[rs]k_live_[A-Za-z0-9]{16}"),
    _kind("a JSON web token", r"eyJ[\w-]{8,200}+\.eyJ[\w-]{8}"),
    _kind("a bearer token", r"[Bb]earer {1,4}(?=[\w.~+/-]{0,60}\d)[\w.~+/-]{20}"),
)
_HINTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"A(?:KIA|SIA|Iza|ccountKey=)",
        r"-(?:----BEGIN |(?<=glpat-)|(?<=sk-)|(?<=xox[abeoprs]-))",
        r"_(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=hf_)|(?<=[rs]k_live_))",
        r"J(?<=eyJ)",
    )
)
"""What every key has one of. Each begins with a character that is rare in JSON text, which searches skip to quickly."""
_AT = re.compile(r"@(?=\w)")
_BEFORE_AT = re.compile(r"[\w.%+-]{1,64}\Z")
_DOMAIN = re.compile(r"(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_RESERVED = re.compile(r"(?:.*\.)?(?:example\.(?:com|org|net)|test|invalid|example|localhost)", re.IGNORECASE)
"""Domains that nobody can own (RFC 2606), which is what placeholders use."""


def check_secrets(row: Row, whole: str) -> None:
    """39. `whole` is the row as JSON text: it is searched first, and only a hit sends for the place."""
    kinds: list[Kind] = []
    if "earer " in whole or any(hint.search(whole) for hint in _HINTS):
        kinds = [kind for kind in KEYS if kind.pattern.search(whole)]
    if not kinds and next(_addresses(whole), None) is None:
        return
    found = 0
    for place, text, _ in texts(row.record):
        for name, start in _secrets(text, kinds):
            where = _untelling(place, kinds)
            part = "the text" if where == place else "a key or text in here"
            row.findings.add(39, "W", pointer(*where), f"{part} looks like {name}, at character {start}")
            found += 1
            if found == MAX_FINDINGS:
                return


def _secrets(text: str, kinds: list[Kind]) -> Iterator[tuple[str, int]]:
    """Kind and position of what looks like a secret in one text."""
    for kind in kinds:
        for match in kind.pattern.finditer(text):
            if _begins(text, match.start()):
                yield kind.name, match.start()
    yield from _addresses(text)


def _begins(text: str, start: int) -> bool:
    """True where a word begins: also behind an escape of JSON text inside text, such as `\\n`."""
    before = text[max(0, start - 2) : start]
    return not before or not (before[-1].isalnum() or before[-1] == "_") or (before[0] == "\\" and len(before) == 2)


def _addresses(text: str) -> Iterator[tuple[str, int]]:
    if "@" not in text:
        return
    for at in _AT.finditer(text):
        domain = _DOMAIN.match(text, at.end())
        if domain is None or _RESERVED.fullmatch(domain.group()):
            continue
        name = _BEFORE_AT.search(text, max(0, at.start() - 64), at.start())
        if name and name.group() != "git":  # git@host is how repositories are named, not a person
            yield "an e-mail address", name.start()


def _untelling(place: Place, kinds: list[Kind]) -> Place:
    """The place, cut short before a key that is itself such a value."""
    for depth, part in enumerate(place):
        if isinstance(part, str) and next(_secrets(part, kinds), None):
            return place[:depth]
    return place
