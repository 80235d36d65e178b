"""tools.parquet: one row a distinct tool with the number of tasks that offer it, collected on disk."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from types import TracebackType

from envace.data.arrow_schemas import tools_schema
from envace.data.table_writer import TableWriter
from envace.files import digest
from envace.types import ToolSpec

_CREATE = """
CREATE TABLE tools (key BLOB PRIMARY KEY, name TEXT, description TEXT, parameters_schema TEXT, schema_sha256 TEXT,
                    tasks INTEGER)
"""
_ADD = """
INSERT INTO tools VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET tasks = tasks + excluded.tasks
"""
_ALL = """
SELECT name, description, parameters_schema, schema_sha256, tasks FROM tools ORDER BY name, schema_sha256, description
"""


class ToolTable:
    """Counts tools in a temporary database beside the table: a large data set has more of them than memory."""

    def __init__(self, path: Path) -> None:
        self._path, self._temporary = path, path.with_suffix(".sqlite")
        self._database = sqlite3.connect(self._temporary)
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")  # the file is thrown away in any case
        self._database.execute(_CREATE)

    def add(self, tools: Counter[ToolSpec]) -> None:
        """Count the tools of some tasks."""
        rows = [
            (
                digest(f"{tool.name}\0{tool.schema_sha256}\0{tool.description}"),
                tool.name,
                tool.description,
                tool.parameters_schema,
                tool.schema_sha256,
                tasks,
            )
            for tool, tasks in tools.items()
        ]
        self._database.executemany(_ADD, rows)

    def __enter__(self) -> ToolTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            if kind is None:
                names = tools_schema().names
                with TableWriter(self._path, tools_schema()) as table:
                    for row in self._database.execute(_ALL):
                        table.add(dict(zip(names, row, strict=True)))
        finally:
            self._database.close()
            self._temporary.unlink(missing_ok=True)
