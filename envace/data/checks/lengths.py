"""Check 33: would the row fit a model's prompt and context, by an estimate from bytes (exact before training)."""

from __future__ import annotations

from envace.data.checks.row import Row


def check_lengths(row: Row) -> None:
    """33. Needs well-formed messages and tools. Leaves the estimates in `row.estimated_tokens`."""
    sizes = estimated_bytes(row)
    per_token = row.bounds.bytes_per_token
    row.estimated_tokens = (round(sizes[0] / per_token), round(sizes[1] / per_token))
    named = ("system message, tools and first user message", "the whole reference")
    limits = (row.bounds.max_prompt_tokens, row.bounds.max_reference_tokens)
    for what, size, tokens, limit in zip(named, sizes, row.estimated_tokens, limits, strict=True):
        if tokens > limit:
            row.findings.add(33, "R", "", f"{what}: about {tokens} tokens ({size} bytes), more than {limit}")


def estimated_bytes(row: Row) -> tuple[int, int]:
    """Bytes of the first prompt, and of the whole reference with everything that it is conditioned on."""
    first = _size(row.tools_text)
    whole = first
    is_first_prompt = True
    for message in row.messages:
        size = _size(message["content"])
        is_first_prompt = is_first_prompt and message["role"] != "assistant"
        if is_first_prompt:
            first += size
        whole += size + sum(_size(call["function"]["arguments"]) for call in message["tool_calls"])
    return first, whole


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
