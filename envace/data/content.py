"""The split of an assistant's raw content into reasoning and reply, and the way back to exactly the same text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from envace.files import compact_json

OPEN, CLOSE = "<think>", "</think>"


@dataclass(frozen=True)
class SplitContent:
    """Reasoning and reply without the white space around them.

    `frame` is empty where the content was laid out in the standard way, `<think>\\nreasoning\\n</think>\\n\\nreply`, or
    has no think block and no outer white space. Otherwise it is JSON text of what the trimming took away.
    """

    reasoning: str
    reply: str
    frame: str = ""


def balanced(content: str) -> bool:
    """True where the content has no think block, or one that is opened before it is closed."""
    opened, closed = content.count(OPEN), content.count(CLOSE)
    return opened == closed and opened <= 1 and (opened == 0 or content.index(OPEN) < content.index(CLOSE))


def split_content(content: str) -> SplitContent:
    """Split raw content. Text before the think block counts as the beginning of the reply.

    Content that is not `balanced` is taken as a reply as a whole (validation rejects it).
    """
    reasoning, reply, frame = "", content, ""
    if OPEN in content and balanced(content):
        before, rest = content.split(OPEN)
        inner, after = rest.split(CLOSE)
        reasoning = inner.strip()
        reply = (before + after).strip()
        frame = compact_json([before, *_margins(inner), after]) if before.strip() else ""
        frame = frame or compact_json([before, *_margins(inner), *_margins(after)])
    else:
        reply = content.strip()
        frame = compact_json(list(_margins(content)))
    plain = SplitContent(reasoning, reply)
    return plain if render_content(plain) == content else SplitContent(reasoning, reply, frame)


def render_content(split: SplitContent) -> str:
    """The raw content that `split_content` was given."""
    reasoning, reply, frame = split.reasoning, split.reply, split.frame
    if not frame:
        block = f"{OPEN}\n{reasoning}\n{CLOSE}" if reasoning else ""
        return block + ("\n\n" if block and reply else "") + reply
    parts = json.loads(frame)
    if len(parts) == 2:
        return parts[0] + reply + parts[1]
    if len(parts) == 4:  # the reply lies on both sides of the block: kept as it was
        before, left, right, after = parts
        return before + OPEN + left + reasoning + right + CLOSE + after
    before, left, right, lead, tail = parts
    return before + OPEN + left + reasoning + right + CLOSE + lead + reply + tail


def _margins(text: str) -> tuple[str, str]:
    """The white space at both ends of a text; for a blank text all of it is at the beginning."""
    body = text.strip()
    if not body:
        return text, ""
    start = text.index(body)
    return text[:start], text[start + len(body) :]
