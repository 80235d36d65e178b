"""Provides the base policy that training starts from, whichever way params ask for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from envace.config import BuildBaseModelParams, SampleParams
from envace.files import write_json
from envace.training.base_model.build import build_base_policies, save_policy
from envace.training.base_model.checkpoint_files import allowed, require_usable, require_whole
from envace.training.base_model.hub import fetch_model

_GIVEN: dict[str, Any] = {"warm_start": "none: a checkpoint was given", "losses": {}}


def provide_base(params: BuildBaseModelParams, sample: SampleParams, base: Path, references: Path) -> dict[str, Any]:
    """Write the base policy to `base` and the policies shown beside it to `references`; both must be new folders.

    Returns the deterministic record of how it was made. Raises CheckpointError for a checkpoint that cannot be used,
    DataError for a hub that cannot be asked.
    """
    references.mkdir(parents=True)
    kept: list[str] = []
    if params.source == "folder":
        assert params.path is not None
        copy_checkpoint(Path(params.path), base)
        record: dict[str, Any] = {"source": "folder"} | _GIVEN
    elif params.source == "hub":
        record = fetch_model(params.hub, base) | _GIVEN
    else:
        policies = build_base_policies(params, sample)
        save_policy(policies.base, policies.tokenizer, base)
        save_policy(policies.clean, policies.tokenizer, references / "clean")
        save_policy(policies.control, policies.tokenizer, references / "control")
        kept = ["clean", "control"]
        record = {
            "source": "tiny",
            "warm_start": "supervised: clean references, then references with seeded systematic faults of both roles",
            "parameters": sum(p.numel() for p in policies.base.parameters()),
            "vocabulary": len(policies.tokenizer),
            "losses": {stage: {"first": v[0], "last": v[-1]} for stage, v in policies.losses.items() if v},
        }
    write_json(references / "index.json", {"policies": kept})
    return record


def copy_checkpoint(source: Path, target: Path) -> None:
    """Copy a local Hugging Face folder: configuration, tokenizer and safetensors, nothing that could run code."""
    names = allowed(path.name for path in source.glob("*") if path.is_file())
    require_whole(names, str(source))
    target.mkdir(parents=True)
    for name in names:
        shutil.copyfile(source / name, target / name)
    require_usable(target, str(source))
