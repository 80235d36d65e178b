"""A whole benchmark on a registered version's checkpoint, recorded with the version: `envace evaluate --benchmark`."""

from __future__ import annotations

from pathlib import Path

from envace.benchmarks.harness import find_benchmark
from envace.benchmarks.install import installed_python
from envace.benchmarks.protocol import Agent
from envace.errors import BenchmarkError
from envace.files import sha256_tree
from flows.benchmark_request import DEFAULT_TOKENS, EndpointRequest, answer_tokens, specs
from flows.benchmark_runs import run_all
from flows.benchmark_server import served
from flows.progress import say

_AT_ONCE, _TEMPERATURE, _TOP_P = 4, 0.6, 0.95


def require_benchmark(name: str, root: Path) -> None:
    """Raises ConfigError where there is no such benchmark, BenchmarkError where its harness is not installed."""
    installed_python(find_benchmark(name), root)


def score_whole(name: str, checkpoint: Path, root: Path, version: str) -> None:
    """One run of all that the harness can run here, with the command's own defaults. `version`: NAME/NUMBER.

    Goes on with a run that was stopped. Raises BenchmarkError where failures of the infrastructure stop it.
    """
    benchmark, weights = find_benchmark(name), sha256_tree(checkpoint)
    tokens = answer_tokens(None, checkpoint, say)
    user = EndpointRequest(None, None, None, 0.0, 1.0, DEFAULT_TOKENS, _AT_ONCE)
    with served(checkpoint, _AT_ONCE, say) as (address, model):
        policy = EndpointRequest(address, model, None, _TEMPERATURE, _TOP_P, tokens, _AT_ONCE)
        agent = Agent(kind="plain")
        wanted = specs(benchmark, agent, policy, user, checkpoint_sha256=weights, model_version=version)
        if not run_all(benchmark, wanted, version.rpartition("/")[0], say, root=root):
            raise BenchmarkError(f"{benchmark.title} was stopped by failures; the same command goes on from there")
