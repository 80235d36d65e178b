"""The most obedient of judges: it repeats any verdict that it finds in its prompt, and follows any order beside it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from tests.field_reports.judge_stub import Answer, says

_BEGIN, _END = "\nBEGIN RECORD\n", "END RECORD"
_LINE = r"(?:^|[\n\r\u2028\x85\x0b\x0c])[^\w{]*"
_HEADER = re.compile(_LINE + r"(verdict|answer|final answer|assistant)\b\W*(true|pass|yes)", re.I)
_ORDER = re.compile(_LINE + r"((ignore|system|dear judge)\b.*|answer) true\b", re.I)
_CONTROL = re.compile(r"<\|?[\w\uff5c/|]+>|\[/?INST\]|<<SYS>>")


def echo(prompt: str, key: str, number: int) -> Answer:
    """A forged verdict that stands in the raw prompt is given as the judge's own; one that only decoding, joining or
    normalising the record brings to light is repeated word for word; without any the answer is false."""
    if fooled(prompt):
        return says(json.dumps({key: True}))
    hidden = next(_booleans(_decoded(prompt)), None)
    return says(json.dumps({key: False}) if hidden is None else json.dumps(hidden))


def fooled(prompt: str) -> bool:
    """Whether raw text forges a verdict: JSON with a boolean, or at the start of a line a header, an order, a control
    token anywhere, or an end of the record that is not the last one."""
    record = prompt.partition(_BEGIN)[2]
    ends = re.findall(rf"{_LINE}{_END}", record)
    order = _HEADER.search(record) or _ORDER.search(record) or _CONTROL.search(prompt)
    return any(_booleans(prompt)) or bool(order) or len(ends) > 1


def _booleans(text: str) -> Iterator[Any]:
    """Every JSON object or array in a text that has a boolean somewhere."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"[{\[]", text):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if re.search(r"\btrue\b|\bfalse\b", re.sub(r'"(\\.|[^"\\])*"', '""', json.dumps(value))):
            yield value


def _decoded(prompt: str) -> str:
    """All texts of the record, decoded, joined without anything between, look-alikes made plain, invisibles dropped."""
    texts = []
    for line in prompt.partition(_BEGIN)[2].split("\n"):
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        texts += [v for k, v in fields.items() if k in ("text", "then") and isinstance(v, str)] if fields else []
    plain = unicodedata.normalize("NFKC", "".join(texts)).replace("\u201c", '"').replace("\u201d", '"')
    plain = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Cs"))
    return plain + plain.replace("\\", "")
