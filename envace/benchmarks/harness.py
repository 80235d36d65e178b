"""The harnesses that can be installed: one folder under harnesses/ and one entry here each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal

from envace.benchmarks.protocol import Row
from envace.errors import ConfigError

Mode = Literal["official", "strict"]
Measure = Callable[[Sequence[Row], Mode], dict[str, float | None]]
FOLDER = Path("harnesses")
_ENTRIES = {"bfcl": "envace.benchmarks.bfcl:BFCL", "tau2": "envace.benchmarks.tau2:TAU2"}
"""name → where its `Benchmark` is."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark and its official harness.

    package, version: what `envace benchmark install` installs, by harnesses/NAME/requirements.txt.
    driver: module file under harnesses/NAME, run inside the venv as `python DRIVER FOLDER`.
    sizes: tasks by category, of the whole benchmark: a category with fewer rows in a run is a subset.
    measure: percent by category and by column from the rows of one run; null for what was not run.
    columns: metric of the paper's data file → key of what `measure` gives, for every cell this benchmark can fill.
    needs: category → what it needs that a plain installation does not have.
    passes: environment variables that the harness may see (keys of services); environment: what is set for it.
    ignores: options of `envace benchmark run` that its driver has no use for, each with what to do instead; refused.
    has_user: whether a simulated user takes part, for whom a script stands in where no model does.
    checkout: version and commit of the sources that its driver can run instead, from a folder that the spec names.
    """

    name: str
    title: str
    package: str
    version: str
    driver: str
    sizes: Mapping[str, int]
    measure: Measure
    columns: Mapping[str, str]
    needs: Mapping[str, str] = field(default_factory=dict)
    passes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["pypi", "checkout"] = "pypi"
    checkout: tuple[str, str] | None = None
    ignores: Mapping[str, str] = field(default_factory=dict)
    has_user: bool = False

    @property
    def folder(self) -> Path:
        """Its driver and its pinned requirements, below the project's root."""
        return FOLDER / self.name

    @property
    def requirements(self) -> Path:
        """Exact versions of everything in the venv."""
        return self.folder / "requirements.txt"


def benchmark_names() -> list[str]:
    """The names that `envace benchmark` takes."""
    return sorted(_ENTRIES)


def find_benchmark(name: str) -> Benchmark:
    """A benchmark by its name. Raises ConfigError with the names there are."""
    if name not in _ENTRIES:
        raise ConfigError(f"there is no benchmark {name!r}; there are: {', '.join(benchmark_names())}")
    module, _, attribute = _ENTRIES[name].partition(":")
    return getattr(import_module(module), attribute)
