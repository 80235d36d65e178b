"""What a policy was measured on: one digest of the held-out tasks and of how they are played and scored."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import DataError
from envace.files import canonical_json, sha256_text
from envace.stage_outputs import written_by

TASKS = Path("data/prepared/tasks.parquet")
SPLITS = ("heldout", "hard")
_PATIENCE = ("timeout_s", "retries", "deadline_s", "concurrency", "breaker_failures", "breaker_pause_s")


def benchmark_sha256(params: Params, root: Path = Path()) -> str:
    """Equal for two policies only if their held-out figures may be compared.

    It covers the held-out tasks by their content, and the parameters of evaluation, rollout and reward. Training tasks
    do not matter, nor where a judge is reached and how long it may take. Raises DataError without the table.
    """
    conditions: dict[str, Any] = {
        "evaluate_policy": params.evaluate_policy.model_dump(mode="json"),
        "rollout": params.rollout.model_dump(mode="json"),
        "reward": params.reward.model_dump(mode="json"),
    }
    endpoint = conditions["reward"]["judge"]["endpoint"]
    for key in ("base_url", "api_key_env", "allowed_hosts", *_PATIENCE):
        endpoint.pop(key, None)
    tasks = _tasks_sha256(written_by("prepare_data", root / TASKS))
    return sha256_text(canonical_json({"tasks": tasks, **conditions}))


def _tasks_sha256(path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, filters=[("split", "in", SPLITS)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(
            f"{path}: not a readable table of tasks ({error}); run `envace run --force prepare_data`"
        ) from None
    # row by row, so that neither the order of the rows nor the layout of the file matters
    rows = sorted(hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).hexdigest() for row in table.to_pylist())
    return sha256_text("\n".join(rows))
