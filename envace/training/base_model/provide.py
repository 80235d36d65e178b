"""Provides the base policy that training starts from, whichever way params ask for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from envace.chat.layout import ChatLayout
from envace.config import BuildBaseModelParams, SampleParams
from envace.errors import CheckpointError
from envace.files import write_json
from envace.training.base_model.build import build_base_policies, save_policy

_COPIED = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")


def provide_base(params: BuildBaseModelParams, sample: SampleParams, base: Path, references: Path) -> dict[str, Any]:
    """Write the base policy to `base` and the policies shown beside it to `references`; both must be new folders.

    Returns the deterministic record of how it was made. Raises CheckpointError for a folder that cannot be used.
    """
    references.mkdir(parents=True)
    if params.source == "folder":
        assert params.path is not None
        copy_checkpoint(Path(params.path), base)
        record: dict[str, Any] = {"source": "folder", "warm_start": "none: a checkpoint was given", "losses": {}}
        kept: list[str] = []
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
    from transformers import AutoTokenizer

    if not (source / "config.json").is_file():
        raise CheckpointError(f"{source}: no config.json; build_base_model.path must be a Hugging Face model folder")
    if not list(source.glob("*.safetensors")):
        raise CheckpointError(f"{source}: no .safetensors file; convert the checkpoint, pickled weights are not loaded")
    target.mkdir(parents=True)
    for path in sorted({p for pattern in _COPIED for p in source.glob(pattern)}):
        shutil.copyfile(path, target / path.name)
    ChatLayout(AutoTokenizer.from_pretrained(target, local_files_only=True, trust_remote_code=False))
