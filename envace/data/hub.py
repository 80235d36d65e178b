"""Raw files from a Hugging Face repository: a pinned revision, every file checked, the licence that of the card."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import HubParams
from envace.data.hub_files import HubFile, download, listed_files, matching
from envace.errors import DataError

TOKEN_VARIABLE = "HF_TOKEN"
_REVISION = re.compile(r"[0-9a-f]{40}")
_WAIT_S = 60.0


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
    Raises DataError for a revision that is no commit, an unknown or gated repository, no network, no matching file,
    bytes that are not the stated ones, and a licence other than the card's.
    """
    repository, revision = params.repository or "", params.revision or ""
    if not _REVISION.fullmatch(revision):
        raise DataError(
            f"fetch_data.hub.revision is {revision!a}: it must be a commit, 40 hexadecimal digits (a branch or a tag "
            "may move); the repository's page shows it under Files, History"
        )
    with _online(), _clear_errors(f"{params.type} {repository!a} at {revision}", params):
        from huggingface_hub import HfApi

        endpoint, token = os.environ.get("HF_ENDPOINT"), os.environ.get(TOKEN_VARIABLE) or False
        api = HfApi(endpoint=endpoint, token=token)
        info = _asked(api, params)
        if info.sha != revision:
            raise DataError(f"{repository}: asked for the revision {revision}, the hub answered with {info.sha}")
        card_licence = _licence_of_card(info)
        _compare_licences(repository, params.licence, card_licence)
        wanted = _wanted_files(params, listed_files(info))
        for name, file in wanted.items():
            download(api, params, file, folder / name)
    origin = f"Hugging Face {params.type} {repository}"
    return HubSource(
        origin, repository, params.type, revision, card_licence, {name: file.path for name, file in wanted.items()}
    )


def _asked(api: Any, params: HubParams) -> Any:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    repository, revision = params.repository or "", params.revision
    try:
        return api.repo_info(repository, repo_type=params.type, revision=revision, files_metadata=True, timeout=_WAIT_S)
    except (HfHubHTTPError, HFValidationError):
        raise
    except (ValueError, TypeError, KeyError) as error:  # a page of a proxy, for example
        raise DataError(
            f"{repository}: {api.endpoint} answers, but not as the hub does ({type(error).__name__}); "
            "check the network and HF_ENDPOINT"
        ) from None


def _wanted_files(params: HubParams, files: list[HubFile]) -> dict[str, HubFile]:
    """The files to fetch under the names that they get here."""
    train = matching(files, params.train_files, "train_files", params.repository)
    heldout = matching(files, params.heldout_files, "heldout_files", params.repository)
    both = sorted({file.path for file in train} & {file.path for file in heldout})
    if both:
        raise DataError(
            f"{params.repository}: {both[0]!a} matches both fetch_data.hub.train_files and heldout_files; "
            "narrow one of them, or what is measured would have been trained on"
        )
    return {
        name: file for split, found in (("train", train), ("heldout", heldout)) for name, file in _named(split, found)
    }


def _named(split: str, files: list[HubFile]) -> Iterator[tuple[str, HubFile]]:
    for index, file in enumerate(files):
        yield (f"{split}-{index:05d}" if len(files) > 1 else split) + file.suffix, file


def _licence_of_card(info: Any) -> str | None:
    stated = info.card_data.get("license") if info.card_data else None
    if isinstance(stated, list):
        stated = ", ".join(str(one) for one in stated)
    return str(stated) if stated else None


def _compare_licences(repository: str, configured: str | None, stated: str | None) -> None:
    """They are compared as the hub writes them: `CC-BY-4.0` is `cc-by-4.0`."""
    allowed = [part.strip().casefold() for part in stated.split(",")] if stated else []
    if configured and stated and configured.strip().casefold() not in allowed:
        raise DataError(
            f"{repository}: its card states the licence {stated!a}, fetch_data.hub.licence says {configured!a}; "
            "read the card, and correct the parameter if you may use the data under its licence"
        )


@contextmanager
def _online() -> Iterator[None]:
    """Stages run offline (envace.quiet); within this block the hub may be asked, over plain HTTP."""
    from huggingface_hub import constants

    wanted = {"HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}
    before = {name: getattr(constants, name) for name in wanted}
    for name, value in wanted.items():
        setattr(constants, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(constants, name, value)


@contextmanager
def _clear_errors(what: str, params: HubParams) -> Iterator[None]:
    """Whatever goes wrong with the hub becomes a DataError. None shows a request's headers, so no token either."""
    import httpx
    from huggingface_hub import errors

    try:
        yield
    except DataError:
        raise
    except errors.GatedRepoError:
        raise DataError(
            f"{what} is gated: accept its conditions on its page, and set the environment variable {TOKEN_VARIABLE} "
            "to a token of your account that may read it"
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(f"{what}: the repository has no such revision; correct fetch_data.hub.revision") from None
    except errors.RepositoryNotFoundError:
        raise DataError(
            f"{what}: no such repository; correct fetch_data.hub.repository and type, or, where it is private, set the "
            f"environment variable {TOKEN_VARIABLE}"
        ) from None
    except errors.HFValidationError:
        raise DataError(f"{what}: not the name of a repository; write it as owner/name") from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        raise DataError(f"{what}: the hub refuses ({status}); try again later") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise DataError(f"{what}: {endpoint} cannot be reached or broke off ({reason}); check the network") from None
