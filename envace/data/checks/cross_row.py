"""Checks 4 and 35 between rows: one uuid in all files twice, one task in a file twice. The first one is kept.

The same task in two files is no row's fault but a leak, which stops the run (envace.data.splits).
"""

from __future__ import annotations

from envace.data.checks.row import Row
from envace.files import canonical_json, sha256_text


class SeenRows:
    """What the rows before had. Holds one hash a row; lives for one run over all files."""

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def check(self, row: Row) -> None:
        """4 and 35 against the rows that were kept before. Call it for rows that are otherwise right."""
        where = f"{row.findings.file}, row {row.findings.row_index}"
        uuid, content = row.record["uuid"], f"{row.findings.file} {content_key(row)}"
        if uuid in self._uuids:
            row.findings.add(4, "R", "/uuid", f"the same uuid stands in {self._uuids[uuid]}")
        elif content in self._contents:
            row.findings.add(35, "R", "", f"same tools and user messages as {self._contents[content]}")
        else:
            self._uuids[uuid] = self._contents[content] = where


def content_key(row: Row) -> str:
    """Equal for rows that offer the same tools and in which the user says the same."""
    said = [message["content"] for message in row.messages if message["role"] == "user"]
    return sha256_text(canonical_json([row.record["tools"], said]))
