"""The contract on the data: one registry of checks, small modules by family, typed findings."""

from envace.data.checks.cross_row import SeenRows
from envace.data.checks.evidence import EvidenceCount
from envace.data.checks.examine import examine
from envace.data.checks.registry import CHECKS, Check, Severity
from envace.data.checks.row import Row
from envace.data.checks.transitions import Transitions
from envace.data.checks.violation import RUN_ROW, Findings, Violation

__all__ = [
    "CHECKS",
    "RUN_ROW",
    "Check",
    "EvidenceCount",
    "Findings",
    "Row",
    "SeenRows",
    "Severity",
    "Transitions",
    "Violation",
    "examine",
]
