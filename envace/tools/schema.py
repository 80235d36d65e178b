"""JSON Schema for tool arguments: Draft 2020-12, objects closed unless they say otherwise, no boolean is an integer."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator


def closed(schema: Any) -> Any:
    """A copy of `schema` in which every object that lists properties admits no others, unless it says so itself."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {k: (v if k in ("enum", "const", "default", "examples") else closed(v)) for k, v in schema.items()}
    if isinstance(copy.get("properties"), dict):
        copy["properties"] = {k: closed(v) for k, v in schema["properties"].items()}
        copy.setdefault("additionalProperties", False)
    return copy


@lru_cache(maxsize=4096)
def argument_validator(parameters_schema: str) -> Draft202012Validator:
    """The validator of one tool's arguments. `parameters_schema` is JSON text; `{}` admits only an empty object."""
    schema = json.loads(parameters_schema) or {"type": "object", "properties": {}}
    return Draft202012Validator(closed(schema))
