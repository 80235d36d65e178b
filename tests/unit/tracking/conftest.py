"""A store that the tests of a module share, and a finished project in front of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The .envace of a whole module: setting one up takes seconds."""
    return tmp_path_factory.mktemp("store") / ".envace"


@pytest.fixture
def project(finished_project: Callable[..., Path], store: Path) -> Path:
    """A finished project whose .envace is the module's store."""
    folder = finished_project()
    store.mkdir(exist_ok=True)
    (folder / ".envace").symlink_to(store)
    return folder
