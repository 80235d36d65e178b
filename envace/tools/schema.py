"""JSON Schema for tool arguments: Draft 2020-12, objects closed unless they say otherwise, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from envace.tools.plain_schema import is_plain

_COMBINERS = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_MAPS = ("properties", "$defs", "definitions")
_NESTED = ("items", "prefixItems", "contains", "additionalProperties", "propertyNames")
_OTHER_MAPS, _OTHER_NESTED = ("patternProperties", "dependentSchemas"), ("unevaluatedProperties", "unevaluatedItems")
"""Rarer places of schemas. They are searched for faults, but what they say about undeclared names is left to them."""


_PATTERN_SECONDS = 0.2
"""A pattern that needs longer for one text can only be one that backtracks without end."""


class CallValidator:
    """Validates the arguments of one tool. Built from a schema that `schema_fault` found nothing wrong with."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        from referencing import Registry

        self.parameters = parameters
        closed = _closed({"properties": {}, **parameters})  # a tool that declares no arguments takes none
        self._validator = _validator_class()(closed, registry=Registry())

    def faults(self, arguments: dict[str, Any]) -> list[tuple[bool, str]]:
        """Pairs (is it about a missing or undeclared argument, what is wrong), none where the arguments are valid."""
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(arguments), key=lambda error: error.json_path)
        except TimeoutError:
            return [(True, "the tool's schema cannot be applied: its pattern takes too long on these arguments")]
        except (RecursionError, OverflowError, re.error, Unresolvable) as error:
            return [(True, f"the tool's schema cannot be applied: {type(error).__name__}")]
        structural = ("required", "additionalProperties", "unevaluatedProperties")
        return [(error.validator in structural, _words(error.json_path, error.message)) for error in errors]

    def declared_types(self, name: str) -> list[str]:
        """The JSON types that one argument is declared to have; empty where it says nothing or is not declared."""
        schema = self.parameters.get("properties", {}).get(name)
        kind = schema.get("type") if isinstance(schema, dict) else None
        return [kind] if isinstance(kind, str) else list(kind or [])


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    """Draft 2020-12 with patterns that cannot hang: `regex` gives up after a time, the standard library never does."""
    import regex
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, wanted: str, instance: Any, _: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not regex.search(
            _python_pattern(wanted), instance, timeout=_PATTERN_SECONDS
        ):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    return extend(Draft202012Validator, {"pattern": pattern})


def _words(path: str, message: str) -> str:
    return message if path == "$" else f"{path.removeprefix('$.')}: {message}"


@lru_cache(maxsize=4096)
def judged_schema(text: str) -> tuple[str | None, CallValidator | None]:
    """What is wrong with the `parameters` in a JSON text, and their validator (None where something is wrong).

    Remembered: the tools of a data set are few compared with its rows.
    """
    parameters = json.loads(text)
    fault = schema_fault(parameters)
    return fault, None if fault else CallValidator(parameters)


def schema_fault(parameters: Any) -> str | None:
    """What is wrong with a tool's `parameters`, or None. An empty object is fine: a tool without arguments."""
    if not isinstance(parameters, dict):
        return f"parameters is {type(parameters).__name__}, not an object"
    if not parameters:
        return None
    if parameters.get("type") != "object":
        return f"parameters has type {parameters.get('type')!r}, not 'object'"
    if is_plain(parameters):
        return None
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError

    try:
        # without the check of formats: patterns are judged below, by what applies them
        Draft202012Validator.check_schema(parameters, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        return f"not a valid JSON Schema at {error.json_path}: {error.message}"
    return next((fault for schema in _subschemas(parameters) if (fault := _own_fault(schema, parameters))), None)


def _own_fault(schema: dict[str, Any], root: dict[str, Any]) -> str | None:
    """What a metaschema cannot see: names that are required but not declared, dead references, bad patterns."""
    is_combined = any(key in schema for key in _COMBINERS)
    properties = schema.get("properties", {})
    undeclared = [name for name in schema.get("required", []) if name not in properties]
    if undeclared and not is_combined and ("properties" in schema or schema is root):
        return f"required names {undeclared}, which are not among the properties"
    reference = schema.get("$ref")
    if reference is not None and not _leads_somewhere(reference, root):
        return f"the reference {reference!r} leads nowhere inside the schema"
    import regex

    try:
        regex.compile(_python_pattern(schema.get("pattern", "")))
    except regex.error as error:
        return f"the pattern {schema['pattern']!r} is not a regular expression: {error}"
    return None


def _leads_somewhere(reference: Any, root: Any) -> bool:
    """Whether a reference is a JSON pointer to a part of the schema itself ("#" is the whole)."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return False
    node = root
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, dict) and key in node:
            node = node[key]
        else:
            return False
    return isinstance(node, dict | bool)


def _python_pattern(pattern: str) -> str:
    """A pattern of JSON Schema (ECMA-262) as `regex` reads it: a hyphen next to a class such as `\\w` is a hyphen."""
    return re.sub(r"(\\[wdsWDS])-(?!\])", r"\1\\-", pattern)


def _subschemas(node: Any) -> Iterator[dict[str, Any]]:
    """All schemas inside a schema, itself included. Names of properties and literal values are no schemas."""
    pending = [node]
    while pending:
        schema = pending.pop()
        if isinstance(schema, list):
            pending.extend(schema)
        elif isinstance(schema, dict):
            yield schema
            for key, child in schema.items():
                if key in _MAPS + _OTHER_MAPS and isinstance(child, dict):
                    pending.extend(child.values())
                elif key in _NESTED + _OTHER_NESTED + _COMBINERS:
                    pending.append(child)


def _closed(schema: Any, is_own: bool = True) -> Any:
    """The same schema, with nothing allowed that is not declared on every object that says nothing about it.

    Alternatives, combinations and definitions see only some of an object's properties: they stay open themselves
    (`is_own` False), and the object that uses them counts what any of them declares (`unevaluatedProperties`). An
    object inside the arguments that declares no properties is free in form.
    """
    if isinstance(schema, list):
        return [_closed(child, is_own) for child in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, child in schema.items():
        if key in (*_MAPS, *_OTHER_MAPS) and isinstance(child, dict):
            owns = key in ("properties", "patternProperties")
            made[key] = {name: _closed(part, owns) for name, part in child.items()}
        elif key in (*_NESTED, *_OTHER_NESTED):
            made[key] = _closed(child)
        elif key in _COMBINERS:
            made[key] = _closed(child, is_own=False)
        else:
            made[key] = child
    if is_own and not {"additionalProperties", "unevaluatedProperties"} & schema.keys():
        is_joined = any(key in schema for key in (*_COMBINERS, "$ref", "$dynamicRef", "dependentSchemas"))
        if is_joined:
            made["unevaluatedProperties"] = False
        elif "properties" in schema and "patternProperties" not in schema:
            made["additionalProperties"] = False
    return made
