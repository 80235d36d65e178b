"""Finished runs from the results folder, grouped into what may stand in one row: same policy, agent and digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, stdev

from pydantic import ValidationError

from envace.benchmarks.harness import Mode, benchmark_names, find_benchmark
from envace.benchmarks.protocol import METRICS, PROVENANCE, REFERENCE_AGENTS, Metrics, Provenance
from envace.errors import BenchmarkError
from envace.files import read_json


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run."""

    folder: Path
    metrics: Metrics
    provenance: Provenance

    @property
    def who(self) -> str:
        """The policy and how it acts; a reference agent by its own name."""
        agent = self.provenance.spec.agent
        if agent.kind in REFERENCE_AGENTS:
            return agent.kind
        by = f" by {agent.model}" if agent.model else ""
        how = "" if agent.kind == "plain" else f", {agent.mode} rehearsal N = {agent.n}{by}"
        return f"{self.provenance.policy_name or self._model}{how}"

    @property
    def _model(self) -> str:
        policy = self.provenance.spec.policy
        return str(policy.model) if policy else "?"

    @property
    def fills_cells(self) -> bool:
        """Whether its figures may stand in a published table's cells."""
        return not self.metrics.subset and self.metrics.aborted is None and not self.stand_in

    @property
    def stand_in(self) -> bool:
        """Whether a script stood in for the simulated user: reference agents are rows of their own all the same."""
        spec = self.provenance.spec
        scripted = find_benchmark(self.metrics.benchmark).has_user and spec.user is None
        return scripted and spec.agent.kind not in REFERENCE_AGENTS

    @property
    def policy(self) -> tuple[str, ...]:
        """Its name, and the weights and the version where they are known: a name alone may be that of many."""
        return self.who, self.provenance.spec.checkpoint_sha256 or "", self.provenance.model_version or ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure over runs: mean and standard deviation in percent (None for a single run), and how many runs."""

    mean: float
    sd: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in seed and run index alone."""

    benchmark: str
    runs: tuple[Run, ...]

    def cells(self, mode: Mode) -> dict[str, Cell]:
        """By metric of the paper's data file; what was not run has none."""
        found = {}
        for metric, key in find_benchmark(self.benchmark).columns.items():
            values = [run.metrics.official.get(key) if mode == "official" else run.metrics.strict.get(key)
                      for run in self.runs]  # fmt: skip
            numbers = [value for value in values if value is not None]
            if numbers and len(numbers) == len(values):
                spread = stdev(numbers) if len(numbers) > 1 else None
                found[metric] = Cell(fmean(numbers), spread, len(numbers))
        return found


@dataclass(frozen=True, slots=True)
class Line:
    """One row of our tables: at most one group of each benchmark."""

    who: str
    groups: tuple[Group, ...]


def read_runs(root: Path) -> list[Run]:
    """Every finished run below `root`, by folder. Raises BenchmarkError where one cannot be read."""
    found = []
    for name in benchmark_names():
        for path in sorted((root / name).glob(f"*/{METRICS}")):
            try:
                figures = Metrics.model_validate(read_json(path))
                record = Provenance.model_validate(read_json(path.with_name(PROVENANCE)))
            except (OSError, ValueError, ValidationError) as error:
                raise BenchmarkError(f"{path.parent}: not a run of a benchmark ({error}); remove the folder") from None
            found.append(Run(path.parent, figures, record))
    return found


def lines(runs: Iterable[Run]) -> list[Line]:
    """Rows: reference agents first, then policies by name. Policies of one name are told apart by their weights, and
    groups of several digests stand in rows of their own.
    """
    by_policy: dict[tuple[str, ...], dict[str, dict[str, list[Run]]]] = {}
    for run in runs:
        groups = by_policy.setdefault(run.policy, {}).setdefault(run.metrics.benchmark, {})
        groups.setdefault(run.provenance.digest, []).append(run)
    found = []
    order = {name: place for place, name in enumerate(REFERENCE_AGENTS)}
    for policy in sorted(by_policy, key=lambda key: (order.get(key[0], len(order)), key)):
        stacks = [
            [Group(name, tuple(of_digest)) for of_digest in by_digest.values()]
            for name, by_digest in by_policy[policy].items()
        ]
        found += [Line(policy[0], tuple(g for g in groups if g is not None)) for groups in zip_longest(*stacks)]
    return found
