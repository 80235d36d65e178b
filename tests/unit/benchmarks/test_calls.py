"""What may reach the harness's `eval`: one call of a known tool with literals; nothing that could run anything else."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.bfcl.calls import CallRules, UnsafeCallError

RULES = CallRules.of({"ls", "mkdir", "sort"}, {"json", "importlib", "class_instance"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_a_good_call_is_passed_on() -> None:
    assert RULES.source("mkdir", '{"dir_name": "a", "deep": true, "n": null}') == "mkdir(dir_name='a',deep=True,n=None)"


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), JSON, max_size=4))
def test_arguments_come_back_as_they_were(arguments: dict[str, object]) -> None:
    try:
        source = RULES.source("ls", json.dumps(arguments))
    except UnsafeCallError:  # an argument called like a keyword of Python, a lone surrogate
        return
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert {str(word.arg): ast.literal_eval(word.value) for word in call.keywords} == arguments


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("__import__", '{"name": "os"}'),
        ("__import__('os').system", "{}"),
        ("eval", '{"source": "1"}'),
        ("open", '{"file": "x", "mode": "w"}'),
        ("exec", "{}"),
        ("importlib", "{}"),
        ("class_instance", "{}"),
        ("ls()or __import__('os').system('id')or ls", "{}"),
        ("ls", "{\"a=__import__('os').system('id'), b\": 1}"),
        ("ls", '{"lambda": 1}'),
        ("ls", '{"a": NaN}'),
        ("ls", '{"a": 1e999}'),
        ("ls", '{"a": 1'),
        ("ls", '{"a": 1, "a": 2}'),
        ("ls", "[1]"),
        ("ls", ""),
        ("ls", '{"a": ' + "9" * 5000 + "}"),
        ("ls", '{"a": ' + "[" * 5000 + "]" * 5000 + "}"),
        ("", "{}"),
    ],
)
def test_anything_else_is_refused(name: str, arguments: str) -> None:
    with pytest.raises(UnsafeCallError):
        RULES.source(name, arguments)


def test_an_unknown_harmless_name_goes_without_its_arguments() -> None:
    assert RULES.source("list_files", '{"a": "b"}') == "list_files()"


def test_a_tool_whose_name_means_something_else_there_is_no_tool() -> None:
    rules = CallRules.of({"ls", "json"}, {"json"})
    assert rules.tools == {"ls"}
    with pytest.raises(UnsafeCallError, match="no tool"):
        rules.source("json", "{}")
