"""Check 19 between rows: does the same call of the same tool have the same result wherever it is recorded."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from envace.data.checks.row import Row
from envace.data.checks.violation import Findings, Violation, pointer
from envace.files import canonical_json, compact_json, digest


class Transitions:
    """Every recorded call of the kept rows, as digests: 32 bytes each, so that a million rows fit in memory."""

    def __init__(self) -> None:
        self._calls, self._results = array("Q"), array("Q")
        self._rows, self._messages = array("Q"), array("Q")
        self._places: list[tuple[str, str, int]] = []

    def add(self, row: Row) -> None:
        """Remember the calls of a kept row. Tools are the same where name and schema are."""
        findings = row.findings
        self._places.append((findings.task_id, findings.file, findings.row_index))
        functions = {tool["function"]["name"]: tool["function"] for tool in row.record["tools"]}
        for exchange in row.exchanges:
            name = exchange.tool_name
            call = compact_json([name, functions[name].get("parameters"), canonical_json(exchange.arguments)])
            self._calls.append(_number(call))
            self._results.append(_number(canonical_json(row.results[exchange.result_index])))
            self._rows.append(len(self._places) - 1)
            self._messages.append(exchange.result_index)

    def conflicts(self) -> Iterator[Violation]:
        """One finding for each recorded call that has another result elsewhere, in order of rows."""
        import numpy as np

        if not self._calls:
            return
        calls, results = (np.frombuffer(column, dtype=np.uint64) for column in (self._calls, self._results))
        order = np.lexsort((results, calls))
        calls, results = calls[order], results[order]
        starts = np.flatnonzero(np.r_[True, calls[1:] != calls[:-1]])
        # sorted by result inside a call, so a call has one result where its first and last are equal
        ends = np.r_[starts[1:], len(calls)]
        mixed = results[starts] != results[ends - 1]
        spans = zip(starts[mixed], ends[mixed], strict=True)
        for index in sorted(int(order[position]) for start, end in spans for position in range(start, end)):
            yield self._violation(index)

    def _violation(self, index: int) -> Violation:
        task_id, file, row_index = self._places[self._rows[index]]
        findings = Findings(file, row_index, task_id)
        place = pointer("messages", self._messages[index], "content")
        findings.add(19, "W", place, "the same call of the same tool has another result elsewhere in the data")
        return findings.settled()[0]


def _number(text: str) -> int:
    return int.from_bytes(digest(text)[:8], "big")
