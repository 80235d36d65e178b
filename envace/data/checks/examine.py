"""The order of the checks on one row. Where a part cannot be read, the checks that would guess it are left out."""

from __future__ import annotations

from typing import Any

from envace.data.checks.calls import check_calls
from envace.data.checks.checklists import check_checklists
from envace.data.checks.cross_row import SeenRows
from envace.data.checks.evidence import EvidenceCount, check_evidence
from envace.data.checks.identity import check_message_sizes, check_row_size, check_uuid
from envace.data.checks.messages import check_order, check_pairing, check_shape
from envace.data.checks.results import check_results
from envace.data.checks.row import Row
from envace.data.checks.text import check_characters, check_texts, repair_results
from envace.data.checks.tools import check_tools


def examine(row: Row, seen: SeenRows, count: EvidenceCount) -> None:
    """Run all checks on a row's parts. The findings are in `row.findings`; tool results may have been repaired."""
    findings = row.findings
    check_row_size(row)
    check_uuid(row)
    repair_results(row)
    check_characters(row)
    check_tools(row)
    check_shape(row)
    are_messages_readable = not findings.has(6)
    user_messages = _count_user(row.messages) if are_messages_readable else None
    check_checklists(row, user_messages)
    if are_messages_readable:
        check_message_sizes(row)
        check_texts(row)
        check_order(row)
        if not findings.has(7):
            check_pairing(row)
            check_calls(row)
            if not findings.has(15):
                check_results(row)
    if not findings.rejected:
        check_evidence(row, count)
        seen.check(row)


def _count_user(messages: list[dict[str, Any]]) -> int:
    return sum(message["role"] == "user" for message in messages)
