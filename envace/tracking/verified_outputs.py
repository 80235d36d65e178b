"""Every output behind a version, hashed again: the project's own files where they are this run's, and DVC's cache.

A later run replaces the files in the project's folder. They are held against a version only as far as the project's
dvc.lock says that they are the version's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from envace.errors import TrackingError
from envace.tracking.dvc_content import Seen, cached_listing, cached_object, file_md5, files_in, listing_md5
from envace.tracking.dvc_lock import LockedStage, stages_of
from envace.tracking.lineage import Lineage
from envace.tracking.provenance import LOCK

Status = Literal["ok", "missing", "differs"]
_SHOWN = 3


def output_checks(lineage: Lineage, root: Path, cache: Path | None, seen: Seen) -> Iterator[tuple[str, Status, str]]:
    """(path, status, where it was found or what is wrong) of every output in the version's dvc.lock."""
    if not lineage.lock:
        yield LOCK, "missing", "registered without a dvc.lock, so the data behind the version is not known"
    present = _present(root)
    for stage in lineage.lock:
        if broken := _broken_link(lineage.lock, stage):
            yield f"inputs of {stage.name}", "differs", broken
        for path, content in stage.outs.items():
            yield path, *_output(path, content, root, cache, present.get(path) == content, seen)


def _output(
    path: str, content: str, root: Path, cache: Path | None, is_current: bool, seen: Seen
) -> tuple[Status, str]:
    in_cache: str | None = "the project has no DVC cache"
    if cache is not None:
        status, in_cache = _cached(content, cache, seen)
        if status == "differs":
            return status, in_cache
        in_cache = None if status == "ok" else in_cache
    if is_current and (root / path).exists():
        if wrong := _changed(path, content, root, cache, seen):
            return "differs", wrong
        return "ok", "in the project's folder" + (" and in DVC's cache" if in_cache is None else f" ({in_cache})")
    if in_cache is None:
        return "ok", "in DVC's cache"
    return "missing", f"neither in the project's folder nor complete in DVC's cache: {in_cache}"


def _changed(path: str, content: str, root: Path, cache: Path | None, seen: Seen) -> str | None:
    """In words, what of the project's own file or folder is not as recorded."""
    found = files_in(root / path, seen)
    if (listing_md5(found) if (root / path).is_dir() else found[""]) == content:
        return None
    try:
        expected = cached_listing(cache, content) if cache is not None else {}
    except TrackingError:
        expected = {}
    if not expected or set(expected) == {""}:
        return f"{path} in the project's folder is not what dvc.lock recorded"
    names = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
    return f"not what dvc.lock recorded: {_few([f'{path}/{name}' for name in names])}"


def _cached(content: str, cache: Path, seen: Seen) -> tuple[Status, str]:
    """Every object of an output, hashed again."""
    try:
        files = cached_listing(cache, content)
    except TrackingError as error:
        return ("differs" if cached_object(cache, content).exists() else "missing"), str(error)
    objects = {name: cached_object(cache, md5) for name, md5 in files.items()}
    gone = [name or content for name, path in objects.items() if not path.is_file()]
    if gone:
        return "missing", f"{len(gone)} of {len(files)} files are not in DVC's cache"
    damaged = [str(path) for name, path in objects.items() if file_md5(path, seen) != files[name]]
    return ("differs", f"DVC's cache is damaged: {_few(damaged)}") if damaged else ("ok", "")


def _broken_link(stages: list[LockedStage], stage: LockedStage) -> str | None:
    """A stage that read something else than the stage before it had written, in words."""
    written = {path: content for other in stages for path, content in other.outs.items()}
    for path, content in stage.deps.items():
        if path in written and written[path] != content:
            return f"{path} was not the one that dvc.lock has as written; the stages did not run one after the other"
    return None


def _present(root: Path) -> dict[str, str]:
    path = root / LOCK
    if not path.is_file():
        return {}
    stages = stages_of(path.read_text(encoding="utf-8"), str(path))
    return {name: content for stage in stages for name, content in stage.outs.items()}


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
