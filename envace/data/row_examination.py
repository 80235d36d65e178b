"""From one raw row to its findings: aliases, then all checks that the row alone can answer."""

from __future__ import annotations

from envace.config import ValidateDataParams
from envace.data.aliases import normalise_row
from envace.data.checks import EvidenceCount, Findings, Row, examine
from envace.data.ids import safe_task_id
from envace.data.reader import RawRow


def examine_raw(file: str, index: int, raw: RawRow, params: ValidateDataParams) -> tuple[Row, EvidenceCount]:
    """The examined row and its evidence. A row whose text is broken has an empty record and that one finding."""
    findings = Findings(file, index)
    text = raw.text
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if raw.value is None:
        findings.add(raw.fault_check, "R", "", f"{raw.place}: {raw.fault}")
        return Row({}, size, params, findings), EvidenceCount()
    record = normalise_row(raw.value)
    findings.task_id = safe_task_id(record.get("uuid"))
    row = Row(record, size, params, findings)
    return row, examine(row)
