"""The base policy from a model repository: a pinned revision, the allowed files, each checked as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.config import ModelHubParams
from envace.hub.repository import Address, opened
from envace.training.base_model.checkpoint_files import allowed, require_usable, require_whole


def fetch_model(params: ModelHubParams, target: Path) -> dict[str, Any]:
    """Download the checkpoint to `target`, which is made; returns what is recorded of it.

    Raises DataError for what goes wrong with the hub, CheckpointError for a repository that holds no usable model.
    """
    address = Address(params.repository or "", "model", params.revision or "", "build_base_model.hub")
    place = f"{address.repository} at {address.revision}"
    target.mkdir(parents=True)
    with opened(address) as repository:
        files = {file.path: file for file in repository.files}
        names = allowed(files)
        require_whole(names, place)
        for name in names:
            repository.fetch(files[name], target / name)
    require_usable(target, place)
    return {
        "source": "hub",
        "repository": address.repository,
        "revision": address.revision,
        "card_licence": repository.card_licence,
    }
