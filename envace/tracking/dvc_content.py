"""Content hashes as DVC computes them (MD5; a folder's is that of its listing), and the objects of its cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from envace.errors import TrackingError

_IGNORED = ("__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")  # as in .dvcignore
Seen = Callable[[int], None]
"""Told the number of bytes that were read."""


def file_md5(path: Path, seen: Seen = lambda size: None) -> str:
    """MD5 of a file's bytes, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            seen(len(block))
    return digest.hexdigest()


def listing_md5(files: Mapping[str, str]) -> str:
    """The hash of a folder from those of its files, by their names in it."""
    entries = [{"md5": files[name], "relpath": name} for name in sorted(files, key=lambda name: name.split("/"))]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def files_in(path: Path, seen: Seen = lambda size: None) -> dict[str, str]:
    """Name to hash of every file below a folder; for a file its own hash under the empty name."""
    if path.is_file():
        return {"": file_md5(path, seen)}
    found = (p for p in path.rglob("*") if p.is_file())
    names = {p.relative_to(path).as_posix(): p for p in found}
    return {name: file_md5(p, seen) for name, p in names.items() if not is_ignored(name)}


def content_md5(path: Path, seen: Seen = lambda size: None) -> str:
    """What DVC would record for a file or folder. Raises OSError where it is not there."""
    files = files_in(path, seen)
    return listing_md5(files) if path.is_dir() else files[""]


def is_ignored(name: str) -> bool:
    """Whether DVC leaves a file out of a folder's hash (.dvcignore)."""
    return name.endswith(".pyc") or any(part in _IGNORED for part in name.split("/"))


def cached_object(cache: Path, md5: str) -> Path:
    """Where the cache keeps the content with this hash; a folder's listing for one that ends in `.dir`."""
    return cache / "files" / "md5" / md5[:2] / md5[2:]


def cached_listing(cache: Path, md5: str) -> dict[str, str]:
    """Name to hash of the files of a cached folder; for a file its own hash under the empty name.

    Raises TrackingError where the listing is missing or not the one that was recorded.
    """
    if not md5.endswith(".dir"):
        return {"": md5}
    path = cached_object(cache, md5)
    try:
        files = {entry["relpath"]: entry["md5"] for entry in json.loads(path.read_text(encoding="utf-8"))}
    except FileNotFoundError:
        raise TrackingError(f"{path}: not in DVC's cache") from None
    except (ValueError, TypeError, KeyError, OSError):
        files = {}
    if listing_md5(files) != md5:
        raise TrackingError(f"{path}: DVC's cache holds another listing than was recorded; the object is damaged")
    return files
