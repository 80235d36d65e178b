"""The files of a hub repository, and their download with size and digest checked."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import DataError
from envace.files import sha256_file
from envace.progress import Report, progress


@dataclass(frozen=True)
class HubFile:
    """A file of a revision. `sha256` is stated for large files only; `blob_id`, Git's digest of it, for the others."""

    path: str
    size: int | None
    sha256: str | None
    blob_id: str | None


def listed_files(info: Any) -> list[HubFile]:
    """The files of a repository's answer, by name."""
    files = [HubFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs else None, s.blob_id) for s in info.siblings or []]
    return sorted(files, key=lambda file: file.path)


def download(url: str, token: Any, file: HubFile, target: Path) -> None:
    """Fetch one file, again from where it broke off if need be. Raises DataError where it is not what is stated."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    with progress(f"fetching {file.path}") as report, _Counted(target, file.size or 0, report) as stream:
        # as it is stored: a compressed transfer could not be taken up again in the middle
        headers = {**build_hf_headers(token=token), "Accept-Encoding": "identity"}
        http_get(url, stream, headers=headers)
    _check(file, target)


class _Counted(io.BufferedWriter):
    """A file that reports how much of it is written."""

    def __init__(self, target: Path, size: int, report: Report) -> None:
        super().__init__(io.FileIO(target, "w"))
        self._size, self._report = size, report

    def write(self, data: Any) -> int:
        """Write all bytes."""
        written = super().write(data)
        self._report(self.tell(), self._size)
        return written


def _check(file: HubFile, target: Path) -> None:
    size = target.stat().st_size
    if file.size is not None and size != file.size:
        raise DataError(f"{file.path}: {size} bytes came, the hub states {file.size}; run the stage again")
    if file.sha256 is not None:
        stated, found = file.sha256, sha256_file(target)
    else:
        stated, found = file.blob_id, _git_digest(target, size)
    if stated is None:
        raise DataError(f"{file.path}: the hub states no digest of it, so what came cannot be checked")
    if stated != found:
        raise DataError(
            f"{file.path}: the bytes that came have the digest {found}, the hub states {stated} for this revision; "
            "run the stage again, and do not use the file if it stays so"
        )


def _git_digest(path: Path, size: int) -> str:
    """Git's name for these bytes."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
