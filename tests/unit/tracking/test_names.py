"""Names and values for MLflow: always accepted, never the same for two different ones, nothing lost."""

from __future__ import annotations

import math
import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.tracking.names import MAX_NAME, MAX_VALUE, leaves, numbers, parameter_texts, path_name, safe_name

odd = st.text() | st.text(alphabet="a/.:@2f ", max_size=8) | st.text(min_size=240, max_size=600)
short = st.text(max_size=3)
paths = st.lists(st.text(alphabet="a/.:@", max_size=4), min_size=1, max_size=4)


def accepted(name: str) -> bool:
    """The rule of MLflow for keys of metrics and parameters (mlflow.utils.validation)."""
    normal = posixpath.normpath(name)
    is_path = normal == name and normal != "." and not normal.startswith(("..", "/"))
    return bool(re.fullmatch(r"[/\w.\- :]+", name)) and is_path and len(name) <= MAX_NAME and name.isascii()


@given(odd)
def test_every_name_is_accepted(name: str) -> None:
    assert accepted(safe_name(name))


@given(odd, odd)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)


@given(paths, paths)
def test_different_paths_stay_different(one: list[str], other: list[str]) -> None:
    assert accepted(path_name(one))
    assert (path_name(one) == path_name(other)) == (one == other)


@pytest.mark.parametrize("name", ["reward/mean", "act/outputs", "p-95_x.y", "validation/reward_true"])
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert safe_name(name) == name


def test_the_stated_mapping() -> None:
    assert safe_name("val/pass@1") == "val/pass:40:1"
    assert safe_name("τ²/acc") == ":3c4::b2:/acc"
    assert safe_name("/a//b/") == ":2f:a:2f::2f:b:2f:"
    assert safe_name("../x") == ":2e::2e:/x"
    assert path_name(["a.b", "c"]) == "a:2e:b.c"


def test_mlflow_itself_accepts_them() -> None:
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name

    for name in ("", "/", "a//b", "..", "val/pass@1", "x" * 400, "a b ", "\ud83d", "\x00", "τ²/acc"):
        _validate_metric_name(safe_name(name))
        _validate_param_name(safe_name(name))


@given(st.dictionaries(short, st.dictionaries(short, st.integers(), max_size=3), max_size=4))
def test_no_nested_value_is_lost(value: dict) -> None:
    stored, long = parameter_texts(value)
    assert len(stored) == len(list(leaves(value))) and not long


def test_deep_and_long_parameters_are_kept() -> None:
    deep: dict = {"x": 1}
    for _ in range(12):
        deep = {"level": deep}
    stored, long = parameter_texts({"deep": deep, "long": "y" * (MAX_VALUE + 1), "list": [1, {"a": None}]})
    assert len(stored) == 3 and all(len(v) <= MAX_VALUE for v in stored.values())
    assert list(long.values()) == ["y" * (MAX_VALUE + 1)]
    assert stored["long"].startswith("sha256:") and stored["list"] == '[1,{"a":null}]'


def test_parameters_that_are_no_numbers_are_kept_as_words() -> None:
    stored, _ = parameter_texts({"a": float("nan"), "b": [1.0, float("-inf")], "c": {}})
    assert stored == {"a": "NaN", "b": "[1.0,-Infinity]", "c": "{}"}


@given(st.dictionaries(st.text(max_size=4), st.floats() | st.integers() | st.booleans() | st.text(max_size=2)))
def test_only_finite_numbers_are_numbers_and_the_others_are_flagged(row: dict) -> None:
    finite, flagged = numbers((safe_name(k), v) for k, v in row.items())
    given_numbers = [v for v in row.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    assert len(finite) + len(flagged) == len(given_numbers)
    assert all(math.isfinite(v) for v in finite.values())
    assert set(flagged.values()) <= {"nan", "inf", "-inf"}


def test_an_integer_beyond_any_float_is_flagged() -> None:
    assert numbers([("a", 10**400), ("b", -(10**400))]) == ({}, {"a": "inf", "b": "-inf"})
