"""A Hugging Face repository at a pinned revision, opened for the length of a block in which alone the hub is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from envace.errors import DataError
from envace.hub.files import HubFile, download, listed_files

TOKEN_VARIABLE = "HF_TOKEN"
_REVISION = re.compile(r"[0-9a-f]{40}")
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Address:
    """Which repository, at which commit; `key` is the section of params.yaml that says so, for what errors advise."""

    repository: str
    type: Literal["dataset", "model"]
    revision: str
    key: str

    def __str__(self) -> str:
        return f"{self.type} {self.repository!a} at {self.revision}"


@dataclass(frozen=True, slots=True)
class Repository:
    """An open repository. `card_licence` is what its card states, None where it is silent."""

    address: Address
    files: list[HubFile]
    card_licence: str | None
    endpoint: str
    token: Any

    def fetch(self, file: HubFile, target: Path) -> None:
        """Download one file. Raises DataError where size or digest are not those that the hub states."""
        from huggingface_hub import hf_hub_url

        at = self.address
        url = hf_hub_url(at.repository, file.path, repo_type=at.type, revision=at.revision, endpoint=self.endpoint)
        download(url, self.token, file, target)


@contextmanager
def opened(address: Address) -> Iterator[Repository]:
    """Ask the hub what the repository holds at the revision.

    Within the block, everything that goes wrong with the hub is a DataError: a revision that is no commit, an unknown
    or gated repository, no network.
    """
    if not _REVISION.fullmatch(address.revision):
        raise DataError(
            f"{address.key}.revision is {address.revision!a}: it must be a commit, 40 hexadecimal digits (a branch or "
            "a tag may move); the repository's page shows it under Files, History"
        )
    with _online(), _clear_errors(address):
        from huggingface_hub import HfApi

        endpoint, token = os.environ.get("HF_ENDPOINT"), os.environ.get(TOKEN_VARIABLE) or False
        api = HfApi(endpoint=endpoint, token=token)
        info = _asked(api, address)
        if info.sha != address.revision:
            raise DataError(
                f"{address.repository}: asked for the revision {address.revision}, the hub answered with {info.sha}"
            )
        yield Repository(address, listed_files(info), _licence_of_card(info), api.endpoint, api.token)


def _asked(api: Any, address: Address) -> Any:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return api.repo_info(
            address.repository,
            repo_type=address.type,
            revision=address.revision,
            files_metadata=True,
            timeout=_WAIT_S,
        )
    except (HfHubHTTPError, HFValidationError):
        raise
    except (ValueError, TypeError, KeyError) as error:  # a page of a proxy, for example
        raise DataError(
            f"{address.repository}: {api.endpoint} answers, but not as the hub does ({type(error).__name__}); "
            "check the network and HF_ENDPOINT"
        ) from None


def _licence_of_card(info: Any) -> str | None:
    stated = info.card_data.get("license") if info.card_data else None
    if isinstance(stated, list):
        stated = ", ".join(str(one) for one in stated)
    return str(stated) if stated else None


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
def _clear_errors(address: Address) -> Iterator[None]:
    """Whatever goes wrong with the hub becomes a DataError. None shows a request's headers, so no token either."""
    import httpx
    from huggingface_hub import errors

    try:
        yield
    except DataError:
        raise
    except errors.GatedRepoError:
        raise DataError(
            f"{address} is gated: accept its conditions on its page, and set the environment variable "
            f"{TOKEN_VARIABLE} to a token of your account that may read it"
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(f"{address}: the repository has no such revision; correct {address.key}.revision") from None
    except errors.RepositoryNotFoundError:
        raise DataError(
            f"{address}: no such repository; correct {address.key}.repository and what kind of repository it is "
            f"({address.type}), or, where it is private, set the environment variable {TOKEN_VARIABLE}"
        ) from None
    except errors.HFValidationError:
        raise DataError(f"{address}: not the name of a repository; write it as owner/name") from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        raise DataError(f"{address}: the hub refuses ({status}); try again later") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise DataError(f"{address}: {endpoint} cannot be reached or broke off ({reason}); check the network") from None
