"""The project's own base policy, where DVC's lock says that it was made of the same params by the present code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from envace.config import Params

LOCK, STAGE = Path("dvc.lock"), "build_base_model"
_BASE, _REFERENCES = Path("models/base"), Path("models/references")
_IGNORED = "__pycache__"  # as .dvcignore says


def project_base(root: Path, params: Params) -> tuple[Path, Path] | None:
    """models/base and models/references of the project; None where they are not known to be what would be built.

    Known means: dvc.lock names the same values of all params that the stage reads, and every file that it lists (code,
    versions, both folders) has the hash that stands there.
    """
    import yaml

    try:
        stage = yaml.safe_load((root / LOCK).read_text(encoding="utf-8"))["stages"][STAGE]
        read, listed = stage["params"]["params.yaml"], [*stage["deps"], *stage["outs"]]
        paths = {entry["path"] for entry in listed}
        same = all(_hash(root / entry["path"]) == entry["md5"] for entry in listed)
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return None
    if read != {key: _value(params, key) for key in read} or not {"build_base_model", "fetch_data.sample"} <= set(read):
        return None
    if not same or not {_BASE.as_posix(), _REFERENCES.as_posix()} <= paths:
        return None
    return root / _BASE, root / _REFERENCES


def _value(params: Params, key: str) -> Any:
    value: Any = params.model_dump(mode="json")
    for part in key.split("."):
        value = value[part]
    return value


def _hash(path: Path) -> str:
    """The MD5 that DVC gives to a file, or to the list of a folder's files."""
    if not path.is_dir():
        return _md5(path.read_bytes())
    files = [p for p in path.rglob("*") if p.is_file() and _IGNORED not in p.parts and p.suffix != ".pyc"]
    entries = [{"md5": _md5(p.read_bytes()), "relpath": p.relative_to(path).as_posix()} for p in files]
    return _md5(json.dumps(sorted(entries, key=lambda e: e["relpath"]), sort_keys=True).encode()) + ".dir"


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
