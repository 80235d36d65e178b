"""Gold values as the text of a Java or JavaScript literal, which is what the harness's checkers read back."""

from __future__ import annotations

import json
from typing import Any


def java_literal(value: Any, kind: str, of: str | None) -> str:
    """`value` as Java source of type `kind` (elements: `of`)."""
    if kind in ("ArrayList", "Array") and isinstance(value, list):
        quoted = of is None or (kind == "ArrayList" and of in ("String", "char"))
        parts = ", ".join(_java_element(item, of, quoted) for item in value)
        if kind == "Array":
            return f"new {of or 'Object'}[]{{{parts}}}"
        return f"new ArrayList<{of or 'Object'}>({f'Arrays.asList({parts})' if value else ''})"
    if kind == "HashMap" and isinstance(value, dict):
        puts = " ".join(f'put("{key}", {_java_element(item, None, True)});' for key, item in value.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}" if value else "new HashMap<>()"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}{ {'long': 'L', 'float': 'f'}.get(kind, '') }"


def javascript_literal(value: Any, kind: str) -> str:
    """`value` as JavaScript source."""
    if isinstance(value, bool):
        return str(value).lower()
    if kind == "Bigint" and isinstance(value, int):
        return f"{value}n"
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def _java_element(item: Any, of: str | None, quoted: bool) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str):
        return f'"{item}"' if quoted else item
    return f"{item}{ {'long': 'L', 'float': 'f'}.get(of or '', '') }"
