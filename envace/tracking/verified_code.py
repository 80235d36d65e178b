"""Whether the commit of a version holds the code that the version was made with, by the hashes in dvc.lock."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from envace.errors import TrackingError
from envace.tracking.code_state import CODE, code_at
from envace.tracking.dvc_content import is_ignored, listing_md5
from envace.tracking.dvc_lock import LockedStage
from envace.tracking.lineage import Lineage

_SHOWN = 3


def code_check(lineage: Lineage, root: Path) -> tuple[Literal["ok", "missing", "differs"], str]:
    """(status, what is wrong or how much was compared)."""
    commit = lineage.git_commit
    if commit is None:
        return "missing", "registered outside git, so no commit says what code was used"
    try:
        files = code_at(root, commit)
    except TrackingError as error:
        return "missing", str(error)
    used = code_deps(lineage.lock)
    if changed := [path for path, content in used.items() if content_at(files, path) != content]:
        return "differs", f"{_few(changed)}: used in another version than commit {commit[:12]} holds"
    if lineage.record.get("uncommitted_code"):
        changed = lineage.record["uncommitted_code"]
        return "differs", f"{_few(changed)}: not committed when the version was registered"
    if not used:
        return "missing", "registered without a dvc.lock, so no hash says what code was used"
    return "ok", f"commit {commit[:12]} holds all {len(used)} files and folders that the stages used"


def code_deps(lock: list[LockedStage]) -> dict[str, str]:
    """Path to content hash of the code that the stages read."""
    deps = {path: content for stage in lock for path, content in stage.deps.items()}
    return {path: content for path, content in sorted(deps.items()) if path.split("/")[0] in CODE}


def content_at(files: dict[str, str], path: str) -> str | None:
    """The hash that DVC would give a file or folder of a commit, None where it is not in it."""
    if path in files:
        return files[path]
    inside = {name.removeprefix(path + "/"): md5 for name, md5 in files.items() if name.startswith(path + "/")}
    inside = {name: md5 for name, md5 in inside.items() if not is_ignored(name)}
    return listing_md5(inside) if inside else None


def _few(paths: list[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
