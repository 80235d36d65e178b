"""Checks 1 and 3 on where the data came from: are the files those that were fetched, may they be used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from envace.config import ValidateDataParams
from envace.data.checks.registry import Severity
from envace.data.checks.violation import RUN_ROW, Findings, Violation
from envace.data.schema_names import NOT_STATED
from envace.files import sha256_file

OWN_SAMPLE = "sample"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def check_source(
    source: dict[str, Any], raw_files: dict[str, list[Path]], params: ValidateDataParams
) -> list[Violation]:
    """1 and 3 against the record that fetch_data wrote (`source.json`)."""
    found: list[Violation] = []
    for split, paths in raw_files.items():
        findings = Findings(split, RUN_ROW)
        for path in paths:
            _check_bytes(findings, path, source.get("files", {}).get(path.name))
        found += findings.settled()
    findings = Findings("", RUN_ROW)
    if source.get("source") != OWN_SAMPLE:
        _check_rights(findings, source, params)
    return found + findings.settled()


def _check_bytes(findings: Findings, path: Path, record: dict[str, Any] | None) -> None:
    if record is None:
        return
    size = path.stat().st_size
    if size != record["bytes"]:
        findings.add(1, "F", "", f"{path.name} has {size} bytes, fetch_data recorded {record['bytes']}")
    elif sha256_file(path) != record["sha256"]:
        findings.add(1, "F", "", f"{path.name} has another SHA-256 than fetch_data recorded")


def _check_rights(findings: Findings, source: dict[str, Any], params: ValidateDataParams) -> None:
    is_hub = source.get("source") == "hub"
    severity: Severity = "F" if is_hub else "W"
    if is_hub and not source.get("repository"):
        findings.add(3, "F", "/repository", "no repository is recorded")
    if is_hub and not _COMMIT.fullmatch(source.get("revision") or ""):
        findings.add(3, "F", "/revision", f"the revision {source.get('revision')!r} is not a commit of 40 hex digits")
    licence = source.get("licence") or NOT_STATED
    if licence.casefold() not in {allowed.casefold() for allowed in params.licences}:
        detail = f"the licence is {licence!r}, which is not on the allow-list ({', '.join(params.licences)})"
        findings.add(3, severity, "/licence", detail)
