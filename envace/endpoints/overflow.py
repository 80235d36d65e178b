"""Whether an endpoint refused a request that does not fit the model's context: then the conversation was too long."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"context[ _](length|window|size)|maximum (context|model length)|contextwindowexceeded|too many tokens|"
    r"prompt is too long|exceed_context",
    re.I,
)
_TOKENS = re.compile(r"\btokens\b")  # the name of a setting, max_tokens, is no speech of tokens
_REFUSED = re.compile(r"\bstatus (\d{3})\b")


def outgrown(text: str, status: int | None = None) -> bool:
    """Whether an error's `text` says so. Endpoints say it each in their own words; a refusal of the request (status 400
    or 413, read from the text of our own client's errors if not given) that speaks of tokens is one, too.
    """
    if status is None and (found := _REFUSED.search(text)):
        status = int(found[1])
    return bool(_WORDS.search(text)) or (status in (400, 413) and bool(_TOKENS.search(text)))
