"""Which files a harness is: the digests of its code and its data, and a refusal of any others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from envace.errors import BenchmarkError
from envace.files import sha256_file


def sha256_files(files: Iterable[Path], below: Path) -> str:
    """Hex SHA-256 over names relative to `below` and contents. Bytecode is to be left out: it differs everywhere."""
    listing = sorted(f"{path.relative_to(below).as_posix()} {sha256_file(path)}" for path in files)
    return hashlib.sha256("\n".join(listing).encode()).hexdigest()


def require_pinned(what: str, package: Path, found: Mapping[str, str], pinned: Mapping[str, str], again: str) -> None:
    """Raises BenchmarkError where a part of `found` is not as pinned. `again`: how to get what was released."""
    changed = [part for part, digest in pinned.items() if found[part] != digest]
    if changed:
        raise BenchmarkError(
            f"{package} has other {' and '.join(changed)} than {what}; its scores would be comparable to nothing, "
            f"so nothing is run ({again})"
        )
