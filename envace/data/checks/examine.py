"""The order of the checks on one row. Where a part cannot be read, the checks that would guess it are left out."""

from __future__ import annotations

from envace.data.checks.calls import check_calls
from envace.data.checks.checklists import check_checklists
from envace.data.checks.evidence import EvidenceCount, check_evidence
from envace.data.checks.extras import check_extras
from envace.data.checks.identity import check_message_sizes, check_row_size, check_uuid
from envace.data.checks.lengths import check_lengths
from envace.data.checks.messages import check_order, check_pairing, check_shape
from envace.data.checks.reachable import check_reachable
from envace.data.checks.results import check_results
from envace.data.checks.row import Message, Row
from envace.data.checks.secrets import check_secrets
from envace.data.checks.text import check_characters, check_texts, repair_results
from envace.data.checks.tool_models import check_tool_models
from envace.data.checks.tools import check_tools
from envace.files import compact_json


def examine(row: Row) -> EvidenceCount:
    """Run all checks on a row's own parts, and count its evidence. The findings are in `row.findings`.

    Tool results may have been repaired. What only other rows can show is left to SeenRows and Transitions.
    """
    findings, evidence = row.findings, EvidenceCount()
    check_row_size(row)
    check_uuid(row)
    repair_results(row)
    row.whole = compact_json(row.record)
    check_characters(row)
    check_tools(row)
    check_tool_models(row)
    check_shape(row)
    are_messages_readable = not findings.has(6)
    user_messages = _count_user(row.messages) if are_messages_readable else None
    check_checklists(row, user_messages)
    check_extras(row, user_messages)
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
        check_evidence(row, evidence)
        check_lengths(row)
        check_reachable(row)
        check_secrets(row, row.whole)
    return evidence


def _count_user(messages: list[Message]) -> int:
    return sum(message["role"] == "user" for message in messages)
