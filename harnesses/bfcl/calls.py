"""Calls before they are executed: the name from an allow-list, the arguments as strict JSON, so that nothing else runs.

The harness turns a call into Python source and evaluates it. What is handed to it here is `name(key=literal, …)` and
no other source.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection
from dataclasses import dataclass

from envace.strict_json import NotStrictJsonError, parse_strict

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UnsafeCallError(ValueError):
    """The call must not reach the interpreter. The message says why."""


@dataclass(frozen=True, slots=True)
class CallRules:
    """tools: names that may be called. taken: names that mean something where the harness evaluates a call."""

    tools: frozenset[str]
    taken: frozenset[str]

    @classmethod
    def of(cls, tools: Collection[str], names_in_scope: Collection[str]) -> CallRules:
        """Rules for these tools, evaluated where `names_in_scope` and Python's builtins can be seen."""
        taken = frozenset(names_in_scope) | frozenset(dir(builtins)) | frozenset(keyword.kwlist)
        return cls(frozenset(tools) - taken, taken)

    def source(self, name: str, arguments: str) -> str:
        """The one Python expression that stands for the call. Raises UnsafeCallError.

        A harmless name that is no tool is passed on without its arguments: evaluating it can only say that there is no
        such name, which is what the harness tells the policy.
        """
        if not _NAME.fullmatch(name) or name.startswith("__"):
            raise UnsafeCallError(f"{name[:80]!r} is no name of a tool")
        given = arguments_of(arguments)
        if name not in self.tools:
            if name in self.taken:
                raise UnsafeCallError(f"{name!r} is no tool, but a name that the harness would find")
            return f"{name}()"
        for key in given:
            if not _NAME.fullmatch(key) or keyword.iskeyword(key):
                raise UnsafeCallError(f"{key[:80]!r} is no name of an argument")
        made = f"{name}({','.join(f'{key}={value!r}' for key, value in given.items())})"
        _require_literals(made, name)
        return made


def arguments_of(text: object) -> dict[str, object]:
    """The arguments of a call, which the API carries as JSON text. Raises UnsafeCallError."""
    if not isinstance(text, str):
        raise UnsafeCallError("the arguments are not text")
    try:
        value = parse_strict(text)
    except NotStrictJsonError as error:
        raise UnsafeCallError(f"the arguments are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UnsafeCallError("the arguments are not a JSON object")
    return value


def _require_literals(source: str, name: str) -> None:
    """A second look, at the source itself: one call of that name, keywords only, each a literal."""
    try:
        call = ast.parse(source, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name or call.args:
            raise ValueError("not one plain call")
        for word in call.keywords:
            ast.literal_eval(word.value)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise UnsafeCallError(f"the arguments are no literals: {type(error).__name__}") from None
