"""Checks 4 and 35 between rows: one uuid in all files twice, one task in a file twice. The first one is kept.

The same task in two files is no row's fault but a leak, which stops the run (envace.data.splits).
"""

from __future__ import annotations

from envace.data.checks.row import Row
from envace.files import canonical_json, digest

Place = tuple[int, int]
"""Number of the file, and index of the row in it."""


class SeenRows:
    """What the rows before had. Holds two digests a row; lives for one run over all files."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._uuids: dict[bytes, Place] = {}
        self._contents: dict[bytes, Place] = {}

    def check(self, row: Row) -> None:
        """4 and 35 against the rows that were kept before. Call it for rows that are otherwise right."""
        file, index = row.findings.file, row.findings.row_index
        if file not in self._files:
            self._files.append(file)
        number = self._files.index(file)
        uuid, content = digest(row.record["uuid"]), digest(f"{number} {content_key(row)}")
        if uuid in self._uuids:
            row.findings.add(4, "R", "/uuid", f"the same uuid stands in {self._where(self._uuids[uuid])}")
        elif content in self._contents:
            where = self._where(self._contents[content])
            row.findings.add(35, "R", "", f"same tools and user messages as {where}")
        else:
            self._uuids[uuid] = self._contents[content] = (number, index)

    def _where(self, place: Place) -> str:
        return f"{self._files[place[0]]}, row {place[1]}"


def content_key(row: Row) -> str:
    """Equal for rows that offer the same tools and in which the user says the same."""
    said = [message["content"] for message in row.messages if message["role"] == "user"]
    return canonical_json([row.tools_text, said])
