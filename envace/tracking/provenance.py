"""Where a policy comes from: the texts and hashes that are kept with its run, so that it can be checked and made again.

Kept as artifacts of the run, below `lineage/`: params.yaml (its values), dvc.yaml, the part of dvc.lock that the
policy and its figures come from, the gate's decision, and record.json, which has the SHA-256 of each. The tag
`lineage_sha256` of the version is the SHA-256 of record.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.files import canonical_json, sha256_text
from envace.tracking.code_state import git_commit, uncommitted_code
from envace.tracking.dvc_lock import LockedStage, behind, part_of, stages_of

FOLDER = "lineage"
RECORD = "record.json"
PARAMS, LOCK, PIPELINE, DECISION = "params.yaml", "dvc.lock", "dvc.yaml", "registration.json"
PRODUCTS = ("models/policy", "reports/training", "reports/evaluation", "data/prepared/manifest.json")
INPUTS = ("data/raw", "data/prepared", "models/base")
"""The data versions that a run used: what `inputs` of the record names by their content hash."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that is known when a policy is registered. `lock` is empty where the stage ran without DVC."""

    git_commit: str | None
    uncommitted: list[str]
    params: Params
    files: dict[str, str]
    lock: list[LockedStage]

    @property
    def record(self) -> dict[str, Any]:
        """What record.json says."""
        return {
            "git_commit": self.git_commit,
            "uncommitted_code": self.uncommitted,
            "profile": self.params.profile,
            "params_sha256": params_sha256(self.params),
            "files": {name: sha256_text(text) for name, text in sorted(self.files.items())},
            "inputs": inputs_of(self.lock),
            "seeds": seeds_of(self.params),
            "judge": judge_of(self.params),
        }

    @property
    def sha256(self) -> str:
        """The hash of the record, and so of all that it names."""
        return sha256_text(canonical_json(self.record))


def provenance(params: Params, root: Path, decision: Path) -> Provenance:
    """What a policy that is registered at this moment comes from. `decision`: the gate's file, where there is one."""
    files, lock = {PARAMS: _values_of(params)}, []
    if (root / LOCK).is_file():
        text = (root / LOCK).read_text(encoding="utf-8")
        lock = behind(stages_of(text, str(root / LOCK)), PRODUCTS)
        files[LOCK] = part_of(text, [stage.name for stage in lock])
    for name, path in ((PIPELINE, root / PIPELINE), (DECISION, root / decision)):
        if path.is_file():
            files[name] = path.read_text(encoding="utf-8")
    return Provenance(git_commit(root), uncommitted_code(root), params, files, lock)


def inputs_of(lock: list[LockedStage]) -> dict[str, str]:
    """Path to content hash of the data versions that the recorded stages wrote."""
    outs = {path: content for stage in lock for path, content in stage.outs.items()}
    return {path: outs[path] for path in INPUTS if path in outs}


def params_sha256(params: Params) -> str:
    """One hash of all parameters."""
    return sha256_text(canonical_json(params.model_dump(mode="json")))


def seeds_of(params: Params) -> dict[str, int]:
    """Every seed, by its key."""
    return {
        "fetch_data.sample": params.fetch_data.sample.seed,
        "build_base_model": params.build_base_model.seed,
        "train_policy": params.train_policy.seed,
        "evaluate_policy": params.evaluate_policy.seed,
    }


def judge_of(params: Params) -> dict[str, Any]:
    """What decided on rewards: the kind of judge, and the model behind it where one was asked."""
    judge = params.reward.judge
    asked = judge.kind != "rule"
    return {
        "reward": params.reward.kind,
        "kind": judge.kind,
        "model": judge.endpoint.model if asked else None,
        "base_url": judge.endpoint.base_url if asked else None,
    }


def _values_of(params: Params) -> str:
    """params.yaml without its comments, which say nothing to the pipeline and may say anything."""
    import yaml

    return yaml.safe_dump(params.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=1000)
