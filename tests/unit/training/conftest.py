"""verl with our plug-ins loaded, and the paths of a training run that is only composed, never started."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.training.overrides import RunPaths


@pytest.fixture(scope="session")
def plugins() -> Any:
    """verl with everything registered."""
    with warnings.catch_warnings(action="ignore"):  # verl's, about engines nobody asked for
        import envace.training.plugins as loaded

    return loaded


@pytest.fixture(scope="session")
def run_paths() -> RunPaths:
    """Paths as a run has them; nothing is there."""
    root = Path("/nowhere")
    return RunPaths(
        model=root / "models/base",
        train_data=root / "train.parquet",
        validation_data=root / "validation.parquet",
        settings=root / "settings.yaml",
        checkpoints=root / "checkpoints",
        ray_temp=root / "ray",
    )


@pytest.fixture(scope="session")
def composed(plugins: Any, params: Params, run_paths: RunPaths) -> Any:
    """verl's configuration for the shipped parameters."""
    from envace.training.overrides import compose, verl_overrides

    return compose(verl_overrides(params, run_paths, None))
