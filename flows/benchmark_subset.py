"""A few tasks of BFCL v4 on a policy that has just been trained or evaluated, where the harness is installed anyway.

It shows that the policy can be scored by the official harness, and next to nothing about how good it is: the figures
are labelled as a subset everywhere.
"""

from __future__ import annotations

from pathlib import Path

from envace.benchmarks.bfcl import BFCL
from envace.benchmarks.identity import run_id
from envace.benchmarks.install import is_installed
from envace.benchmarks.protocol import METRICS, Agent, Spec
from envace.benchmarks.run import RUNS
from envace.errors import EnvaceError
from envace.files import sha256_tree
from flows.benchmark_request import EndpointRequest, specs
from flows.benchmark_runs import run_all
from flows.benchmark_server import served
from flows.progress import say

NAME = "score a subset of BFCL v4"
TASKS = (
    *(f"simple_python_{n}" for n in range(4)),
    *(f"irrelevance_{n}" for n in range(4)),
    "live_simple_0-0-0",
    "multi_turn_base_0",
)
_AT_ONCE, _TOKENS = 4, 128
_MOST_BYTES = 256 << 20


def is_wanted(checkpoint: Path, root: Path) -> bool:
    """Whether there is something to score: the harness is installed, and the policy small enough to be served beside
    everything else (of a large one the benchmark itself tells more).
    """
    if not is_installed(BFCL, root) or not (checkpoint / "config.json").is_file():
        return False
    return sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()) <= _MOST_BYTES


def score_subset(checkpoint: Path, root: Path, version: str | None = None) -> None:
    """Score the policy in `checkpoint` unless that has been done. A failure is told and harms nothing else."""
    try:
        weights = sha256_tree(checkpoint)
        label = f"policy-{weights[:8]}"
        named = _spec("http://127.0.0.1/v1", checkpoint.resolve().name, weights, version)
        if version is None and (root / RUNS / BFCL.name / run_id(named, label) / METRICS).is_file():
            return
        with served(checkpoint, _AT_ONCE, say) as (address, model):
            wanted = [_spec(address, model, weights, version)]
            run_all(BFCL, wanted, label, say, track=version is not None, root=root)
    except Exception as error:  # whatever recording raises: the store's own errors, a full disk
        kind = "" if isinstance(error, EnvaceError) else f"{type(error).__name__}: "
        say(f"the subset of BFCL v4 was not scored: {kind}{error}")


def _spec(address: str, model: str, weights: str, version: str | None) -> Spec:
    policy = EndpointRequest(address, model, None, 0.0, 1.0, _TOKENS, _AT_ONCE)
    user = EndpointRequest(None, None, None, 0.0, 1.0, _TOKENS, _AT_ONCE)
    (made,) = specs(
        BFCL, Agent(kind="plain"), policy, user, ids=TASKS, checkpoint_sha256=weights, model_version=version
    )
    return made
