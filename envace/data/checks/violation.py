"""What a check finds: one violation, and the list that the checks of one row write to."""

from __future__ import annotations

from dataclasses import dataclass

from envace.data.checks.registry import CHECKS, Severity

MAX_DETAIL = 300
RUN_ROW = -1
"""Row index of violations that concern a whole file or run."""


@dataclass(frozen=True)
class Violation:
    """One finding. `pointer` is a JSON pointer (RFC 6901) into the normalised row, `flag` what it puts on the task."""

    task_id: str
    file: str
    row_index: int
    check_id: int
    severity: Severity
    pointer: str
    detail: str
    flag: str


class Findings:
    """Collects the violations of one row."""

    def __init__(self, file: str, row_index: int, task_id: str = "") -> None:
        self.file = file
        self.row_index = row_index
        self.task_id = task_id
        self._found: list[Violation] = []

    def add(self, check_id: int, severity: Severity, place: str, detail: str, flag: str | None = None) -> None:
        """Note a violation at a JSON pointer. A warning takes its check's flag unless another is given."""
        check = CHECKS[check_id]
        assert severity in check.severities, (check_id, severity)
        flag = (check.flag if flag is None else flag) if severity == "W" else ""
        text = printable(detail)
        text = text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"
        where = (self.task_id, self.file, self.row_index)
        self._found.append(Violation(*where, check_id, severity, printable(place), text, flag))

    def has(self, check_id: int, severity: Severity = "R") -> bool:
        """True where this check has found something of this severity."""
        return any(v.check_id == check_id and v.severity == severity for v in self._found)

    @property
    def rejected(self) -> bool:
        """True where a finding rejects the row."""
        return any(v.severity == "R" for v in self._found)

    def settled(self) -> list[Violation]:
        """What counts in the end: a rejected row's warnings are left out, so that they count kept rows only."""
        return [v for v in self._found if v.severity == "R"] if self.rejected else list(self._found)


def pointer(*parts: str | int) -> str:
    """A JSON pointer from its parts."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def printable(text: str) -> str:
    """Text that every file and terminal can hold: control characters and lone surrogates are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
