"""Schemas of tools judge arguments, whatever a schema holds."""

from __future__ import annotations

from envace.tools.schema import CallValidator


def test_a_pattern_that_backtracks_without_end_is_a_fault_and_not_a_hang() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|aa)+$"}}}
    validator = CallValidator(schema)
    assert validator.faults({"a": "aaaa"}) == []
    assert validator.faults({"a": "aab"}) == [(False, "a: 'aab' does not match '^(a|aa)+$'")]
    ((is_structural, detail),) = validator.faults({"a": "a" * 90 + "b"})
    assert is_structural and "takes too long" in detail
