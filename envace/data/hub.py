"""Raw files from a Hugging Face repository: which files are wanted, what they are called here, whose licence holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from envace.config import HubParams
from envace.data.reader import SUFFIXES
from envace.errors import DataError
from envace.hub.files import HubFile
from envace.hub.repository import Address, opened

_KEY = "fetch_data.hub"
_SHOWN = 10  # file names listed in an error


@dataclass(frozen=True)
class HubSource:
    """What was fetched and from where. `card_licence` is what the repository's card states, None where it is silent;
    `files` gives each file's name here and its path there."""

    origin: str
    repository: str
    type: str
    revision: str
    card_licence: str | None
    files: dict[str, str]


def fetch_from_hub(params: HubParams, folder: Path) -> HubSource:
    """Download the files of both splits into `folder`, as `<split>.<suffix>` or `<split>-<number>.<suffix>`.

    Size and digest of every file are compared with what the hub states for the pinned revision.
    Raises DataError for whatever `opened` raises it for, no matching file, bytes that are not the stated ones, and a
    licence other than the card's.
    """
    address = Address(params.repository or "", params.type, params.revision or "", _KEY)
    with opened(address) as repository:
        _compare_licences(address.repository, params.licence, repository.card_licence)
        wanted = _wanted_files(params, repository.files)
        for name, file in wanted.items():
            repository.fetch(file, folder / name)
    return HubSource(
        origin=f"Hugging Face {params.type} {address.repository}",
        repository=address.repository,
        type=address.type,
        revision=address.revision,
        card_licence=repository.card_licence,
        files={name: file.path for name, file in wanted.items()},
    )


def _wanted_files(params: HubParams, files: list[HubFile]) -> dict[str, HubFile]:
    """The files to fetch under the names that they get here."""
    train = _matching(files, params.train_files, "train_files", params.repository)
    heldout = _matching(files, params.heldout_files, "heldout_files", params.repository)
    both = sorted({file.path for file in train} & {file.path for file in heldout})
    if both:
        raise DataError(
            f"{params.repository}: {both[0]!a} matches both {_KEY}.train_files and heldout_files; "
            "narrow one of them, or what is measured would have been trained on"
        )
    return {
        name: file for split, found in (("train", train), ("heldout", heldout)) for name, file in _named(split, found)
    }


def _matching(files: list[HubFile], glob: str | None, key: str, repository: str | None) -> list[HubFile]:
    """The files that match, in name order (`*` also matches a slash). Raises DataError where there are none."""
    if glob is None:
        return []
    found = [file for file in files if fnmatchcase(file.path, glob)]
    if not found:
        names = ", ".join(file.path for file in files[:_SHOWN]) or "nothing"
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        raise DataError(f"{repository}: no file matches {_KEY}.{key} {glob!a}; there are {names}{more}")
    odd = [file.path for file in found if not _suffix(file)]
    if odd:
        raise DataError(
            f"{repository}: {odd[0]!a} matches {_KEY}.{key}, but its name does not end in "
            f"{', '.join(SUFFIXES)}; narrow the pattern"
        )
    return found


def _suffix(file: HubFile) -> str:
    """The kind of raw file by its name, or nothing."""
    return next((suffix for suffix in SUFFIXES if file.path.endswith(suffix)), "")


def _named(split: str, files: list[HubFile]) -> Iterator[tuple[str, HubFile]]:
    for index, file in enumerate(files):
        yield (f"{split}-{index:05d}" if len(files) > 1 else split) + _suffix(file), file


def _compare_licences(repository: str, configured: str | None, stated: str | None) -> None:
    """They are compared as the hub writes them: `CC-BY-4.0` is `cc-by-4.0`."""
    allowed = [part.strip().casefold() for part in stated.split(",")] if stated else []
    if configured and stated and configured.strip().casefold() not in allowed:
        raise DataError(
            f"{repository}: its card states the licence {stated!a}, {_KEY}.licence says {configured!a}; "
            "read the card, and correct the parameter if you may use the data under its licence"
        )
