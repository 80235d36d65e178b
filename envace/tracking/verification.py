"""Every hash of a version's lineage, computed again: from the registry, the project's folder, DVC's cache and git."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from envace.config import parse_params
from envace.errors import EnvaceError
from envace.files import sha256_file, sha256_text, sha256_tree
from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml
from envace.tracking.dvc_content import Seen, content_md5
from envace.tracking.dvc_lock import content_of
from envace.tracking.lineage import EVALUATION, Lineage
from envace.tracking.names import leaves, numbers, path_name
from envace.tracking.policy_model import registered_checkpoint
from envace.tracking.provenance import PARAMS, RECORD, params_sha256
from envace.tracking.verified_code import code_check
from envace.tracking.verified_outputs import output_checks
from envace.tracking.verified_tags import wrong_tags

Status = Literal["ok", "missing", "differs"]
POLICY = "models/policy"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was recorded, and whether it is still that."""

    what: str
    status: Status
    detail: str


def verify(lineage: Lineage, root: Path, cache: Path | None, seen: Seen = lambda size: None) -> Iterator[Check]:
    """All checks, one after the other. `cache`: DVC's, None where the project has none. `seen` is told bytes read."""
    yield _kept(lineage)
    yield _registered_model(lineage)
    yield _parameters(lineage)
    yield _figures(lineage)
    yield _tags(lineage)
    yield Check("code", *code_check(lineage, root))
    for path, status, detail in output_checks(lineage, root, cache, seen):
        yield Check(path, status, detail)


def _kept(lineage: Lineage) -> Check:
    """The record against the version's tag, and the kept files against the record."""
    what = "record"
    if sha256_text(lineage.texts[RECORD]) != lineage.tags.get("lineage_sha256"):
        return Check(what, "differs", f"{RECORD} is not what the version's tag lineage_sha256 names")
    files = lineage.record["files"]
    if gone := [name for name in files if name not in lineage.texts]:
        return Check(what, "missing", f"no longer kept: {', '.join(gone)}")
    if changed := [name for name, content in files.items() if sha256_text(lineage.texts[name]) != content]:
        return Check(what, "differs", f"changed since registration: {', '.join(changed)}")
    return Check(what, "ok", f"{', '.join(files)} as they were recorded")


def _registered_model(lineage: Lineage) -> Check:
    what = "registered model"
    try:
        folder = registered_checkpoint(lineage.model)
    except EnvaceError as error:
        return Check(what, "missing", str(error))
    if not folder.is_dir():
        return Check(what, "missing", f"{folder}: not found")
    if sha256_tree(folder) != lineage.tags.get("model_sha256"):
        return Check(what, "differs", f"{folder}: not the checkpoint that was registered")
    trained = content_of(lineage.lock, POLICY)
    if trained is not None and content_md5(folder) != trained:
        return Check(what, "differs", f"is not the {POLICY} of the recorded dvc.lock")
    return Check(what, "ok", "the bytes that were registered" + (f", and {POLICY} of dvc.lock" if trained else ""))


def _parameters(lineage: Lineage) -> Check:
    what = "parameters"
    if PARAMS not in lineage.texts:
        return Check(what, "missing", f"{PARAMS} is no longer kept")
    try:
        values = parse_plain_yaml(lineage.texts[PARAMS])
        if params_sha256(parse_params(values, PARAMS)) != lineage.tags.get("params_sha256"):
            return Check(what, "differs", f"{PARAMS} is not what the tag params_sha256 names")
    except NotPlainYamlError as error:
        return Check(what, "differs", f"{PARAMS} cannot be read any more: {error}")
    except EnvaceError:  # parameters of another version of the code: their text is checked all the same
        pass
    for stage in lineage.lock:
        for key, value in stage.params.items():
            if not _same(_at(values, key), value):
                return Check(what, "differs", f"stage {stage.name} ran with another {key} than {PARAMS} has")
    return Check(what, "ok", "as recorded, and those that dvc.lock has for each stage")


def _figures(lineage: Lineage) -> Check:
    """The evaluation's file against its hash, and the metrics in MLflow against the file."""
    what, path = "figures", lineage.artifacts / EVALUATION
    if not path.is_file():
        return Check(what, "missing", f"{path}: not found")
    if sha256_file(path) != lineage.tags.get("evaluation_sha256"):
        return Check(what, "differs", f"{path}: changed since registration")
    policies = json.loads(path.read_text(encoding="utf-8")).get("policies", {})
    expected, _ = numbers((f"evaluation/{path_name(keys)}", value) for keys, value in leaves(policies))
    wrong = [key for key, value in expected.items() if lineage.metrics.get(key) != value]
    if wrong:
        return Check(what, "differs", f"MLflow shows another {wrong[0]} than {EVALUATION} ({len(wrong)} in all)")
    return Check(what, "ok", f"{len(expected)} metrics as in {EVALUATION}")


def _tags(lineage: Lineage) -> Check:
    what = "tags"
    try:
        wrong = wrong_tags(lineage)
    except EnvaceError as error:
        return Check(what, "missing", f"what they were made from: {error}")
    if wrong:
        return Check(what, "differs", "; ".join(wrong))
    later = ", those of the later evaluation too" if lineage.later is not None else ""
    return Check(what, "ok", f"commit, data, benchmark and held-out figures as recorded{later}")


def _at(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _same(one: Any, other: Any) -> bool:
    """Equal; YAML dialects differ in whether 1e-05 is a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    figures = _float(one), _float(other)
    if isinstance(one, float | int) != isinstance(other, float | int) and None not in figures:
        return math.isclose(figures[0] or 0.0, figures[1] or 0.0, rel_tol=1e-12)
    return one == other


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
