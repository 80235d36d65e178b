"""The files of a hub repository: which ones are wanted, and their download with size and digest checked."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from envace.config import HubParams
from envace.data.reader import SUFFIXES
from envace.errors import DataError
from envace.files import sha256_file
from envace.progress import Report, progress

_SHOWN = 10  # file names listed in an error


@dataclass(frozen=True)
class HubFile:
    """A file of a revision. `sha256` is stated for large files only; `blob_id`, Git's digest of it, for the others."""

    path: str
    size: int | None
    sha256: str | None
    blob_id: str | None

    @property
    def suffix(self) -> str:
        """The kind of raw file by its name, or nothing."""
        return next((suffix for suffix in SUFFIXES if self.path.endswith(suffix)), "")


def listed_files(info: Any) -> list[HubFile]:
    """The files of a repository's answer, by name."""
    files = [HubFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs else None, s.blob_id) for s in info.siblings or []]
    return sorted(files, key=lambda file: file.path)


def matching(files: list[HubFile], glob: str | None, key: str, repository: str | None) -> list[HubFile]:
    """The files that match, in name order (`*` also matches a slash). Raises DataError where there are none."""
    if glob is None:
        return []
    found = [file for file in files if fnmatchcase(file.path, glob)]
    if not found:
        names = ", ".join(file.path for file in files[:_SHOWN]) or "nothing"
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        raise DataError(f"{repository}: no file matches fetch_data.hub.{key} {glob!a}; there are {names}{more}")
    odd = [file.path for file in found if not file.suffix]
    if odd:
        raise DataError(
            f"{repository}: {odd[0]!a} matches fetch_data.hub.{key}, but its name does not end in "
            f"{', '.join(SUFFIXES)}; narrow the pattern"
        )
    return found


def download(api: Any, params: HubParams, file: HubFile, target: Path) -> None:
    """Fetch one file, again from where it broke off if need be. Raises DataError where it is not what is stated."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(
        params.repository or "", file.path, repo_type=params.type, revision=params.revision, endpoint=api.endpoint
    )
    with progress(f"fetching {file.path}") as report, _Counted(target, file.size or 0, report) as stream:
        # as it is stored: a compressed transfer could not be taken up again in the middle
        headers = {**build_hf_headers(token=api.token), "Accept-Encoding": "identity"}
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
