"""docs/data.md keeps its promises: its smallest file is valid, and its table lists the checks that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envace.data.checks import CHECKS, Violation


def _page(project_root: Path) -> str:
    return (project_root / "docs/data.md").read_text(encoding="utf-8")


def test_the_smallest_file_is_valid(project_root: Path, found: Callable[[dict[str, Any]], list[Violation]]) -> None:
    match = re.search(r"```json\n(.*?)```", _page(project_root), re.DOTALL)
    assert match
    (row,) = json.loads(match[1])
    assert found(row) == []


def test_the_table_lists_every_check_with_its_rule(project_root: Path) -> None:
    page = _page(project_root)
    for check in CHECKS.values():
        assert f"| {check.id} | {check.field} | {check.rule} | {', '.join(check.severities)} |" in page
        assert not check.flag or f"`{check.flag}`" in page
