"""Whether a policy is in the registry, asked on every run: a look into the database without loading MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from envace.config import Params
from envace.files import sha256_tree
from envace.tracking.evidence import POLICY
from envace.tracking.store import artifacts_exist, database

_QUERY = """
    select v.storage_location from model_versions v join model_version_tags t using (name, version)
    where v.name = ? and v.status = 'READY' and t.key = 'model_sha256' and t.value = ?
"""


def is_registered(params: Params, root: Path = Path()) -> bool:
    """True if models/policy is a version of `register_model.model_name` and its artifacts are still there.

    Errs on the side of False (a damaged store, another schema): registering again is get-or-create and does no harm.
    """
    if not database(root).is_file() or not (root / POLICY).is_dir():
        return False
    try:
        with closing(sqlite3.connect(f"{database(root).as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_QUERY, (params.register_model.model_name, sha256_tree(root / POLICY))).fetchall()
    except sqlite3.Error:
        return False
    return any(artifacts_exist(location) for (location,) in rows)
