"""Canonical JSON, hashes and all-or-nothing writes: what every stage needs to touch files safely."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def compact_json(value: Any) -> str:
    """One-line JSON that keeps the order of keys and non-ASCII characters (what a prompt shows)."""
    return _COMPACT.encode(value)


def canonical_json(value: Any) -> str:
    """One-line JSON with sorted keys: equal values give equal text (what is compared and hashed)."""
    return _CANONICAL.encode(value)


def sha256_text(text: str) -> str:
    """Hex SHA-256 of the UTF-8 bytes of `text`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest(text: str) -> bytes:
    """16 bytes that differ for different texts: what sets and tables of seen things hold instead of the texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes, read in blocks."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def sha256_tree(folder: Path) -> str:
    """Hex SHA-256 over the relative names and contents of all files below `folder`."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    return sha256_text("\n".join(f"{n} {sha256_file(folder / n)}" for n in names))


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary path beside `target`; on success it replaces `target`, on any error it is removed.

    Works for a file and for a folder (the caller makes the folder). A reader sees the old or the new, never a part.
    What a killed process has left of the same target is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{glob.escape(target.name)}.part-*"):
        if not _is_alive(left.name.rpartition(".part-")[2].split("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    holder = Path(tempfile.mkdtemp(prefix=f".{target.name}.part-{os.getpid()}-", dir=target.parent))
    part = holder / target.name
    try:
        yield part
        if part.is_dir() and target.exists():
            target.rename(holder / "replaced")  # a folder cannot be renamed over a full one
        os.replace(part, target)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def _is_alive(pid: str) -> bool:
    """False where the process is known to be gone."""
    if not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_text(target: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic_path(target) as part:
        part.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:
    """Write indented JSON with a final newline, atomically. Refuses NaN and infinities."""
    write_text(target, json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
