"""What is wrong with one raw file: the checks of the pipeline on a user's own file, without a trace on the disk."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import envace
from envace.config import Params, ValidateDataParams, load_params
from envace.data.checks import CHECKS, RUN_ROW, Violation
from envace.data.reader import read_rows
from envace.data.validation import VIOLATIONS, Validation, validate_files
from envace.data.violation_table import read_violations
from envace.errors import DataError

SEVERITIES = {"R": "rejected", "W": "kept, flagged", "F": "run fails"}
WHOLE_FILE = "whole file"
_NAME = "file"
"""What findings call the file; it is one, so its name would say nothing."""


@dataclass(frozen=True)
class Finding:
    """One finding for a person. `row` counts from 0 and is None where the file as a whole is meant.

    `place` says where the row begins ("line 12"), `pointer` (RFC 6901) where in the row, after other spellings are
    turned into the usual ones. `advice` says what to do.
    """

    row: int | None
    place: str
    task_id: str
    check: int
    field: str
    severity: str
    pointer: str
    detail: str
    advice: str


@dataclass(frozen=True)
class FileCheck:
    """The outcome for one file. `findings` are on rows, those that reject first where there are too many; `run` has
    those on the whole file. `not_shown` counts by check what is beyond the limit.
    """

    rows: int
    kept: int
    flagged: int
    quarantined: int
    findings: list[Finding]
    run: list[Finding]
    not_shown: dict[int, int]
    would_fail: bool

    @property
    def all_kept(self) -> bool:
        """True where the pipeline would take every row of the file (flags are allowed)."""
        return not self.quarantined and not self.would_fail


def params_in_force(folder: Path) -> tuple[Params, str]:
    """The parameters of `folder`, else those that the project ships, and words that say which.

    Raises ConfigError where they are wrong, and where there are none.
    """
    own = folder / "params.yaml"
    if own.is_file():
        return load_params(own), "params.yaml of this folder"
    shipped = Path(envace.__file__).resolve().parents[1] / "params.yaml"
    return load_params(shipped), "the project's params.yaml (this folder has none)"


def check_file(path: Path, params: ValidateDataParams, limit: int, licence: str | None = None) -> FileCheck:
    """Run all checks on a raw file that stands alone, and keep at most `limit` findings on rows.

    `licence` is what fetch_data would record. Nothing is written but into a temporary folder that is removed; memory
    does not grow with the size of rows. Raises DataError where the file cannot be read, or no temporary folder written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="envace-check-") as name:
            folder = Path(name)
            result = validate_files({_NAME: [path]}, params, folder, {"source": "file", "licence": licence})
            chosen = _chosen(read_violations(folder / VIOLATIONS), limit)
    except OSError as error:
        where = error.filename or tempfile.gettempdir()
        raise DataError(f"{where}: {error.strerror}; set TMPDIR to a folder with room for a copy of the file") from None
    places = _places(path, {violation.row_index for violation in chosen})
    return _outcome(result, chosen, places)


def _chosen(found: Iterator[Violation], limit: int) -> list[Violation]:
    """At most `limit` findings in order of rows; where there are more, those that reject a row come first."""
    rejecting: list[Violation] = []
    flagging: list[Violation] = []
    for violation in found:
        kind = rejecting if violation.severity == "R" else flagging
        if len(kind) < limit:
            kind.append(violation)
    chosen = (rejecting + flagging)[:limit]
    return sorted(chosen, key=lambda v: (v.row_index, v.check_id, v.pointer))


def _places(path: Path, wanted: set[int]) -> dict[int, str]:
    """Where the wanted rows begin: the file is read again up to the last of them, without parsing."""
    places: dict[int, str] = {}
    if wanted:
        last = max(wanted)
        for raw in read_rows(path, max_row_bytes=0):
            if raw.index in wanted:
                places[raw.index] = raw.place
            if raw.index == last:
                break
    return places


def _outcome(result: Validation, chosen: list[Violation], places: dict[int, str]) -> FileCheck:
    counts = result.files[_NAME]
    found: Counter[int] = Counter()
    for (check_id, _), number in result.found.items():
        found[check_id] += number
    not_shown = found - Counter(violation.check_id for violation in chosen)
    return FileCheck(
        rows=counts.rows,
        kept=counts.kept,
        flagged=counts.flagged,
        quarantined=counts.quarantined,
        findings=[_finding(violation, places) for violation in chosen],
        run=[_finding(violation, places) for violation in [*result.failures, *result.warnings]],
        not_shown=dict(sorted(not_shown.items())),
        would_fail=bool(result.failures),
    )


def _finding(violation: Violation, places: dict[int, str]) -> Finding:
    check = CHECKS[violation.check_id]
    is_row = violation.row_index != RUN_ROW
    return Finding(
        row=violation.row_index if is_row else None,
        place=places.get(violation.row_index, "") if is_row else WHOLE_FILE,
        task_id=violation.task_id,
        check=check.id,
        field=check.field,
        severity=SEVERITIES[violation.severity] if is_row or violation.severity == "F" else "warning",
        pointer=violation.pointer,
        detail=violation.detail,
        advice=check.advice,
    )
