"""BFCL v4: its categories and their sizes, and the columns of the paper's Table 1 by the stated formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envace.benchmarks.harness import Benchmark, Mode
from envace.benchmarks.metrics import by_category, mean, percent
from envace.benchmarks.protocol import Row

SIMPLE = {"simple_python": 400, "simple_java": 100, "simple_javascript": 50}
LIVE = {"live_simple": 258, "live_multiple": 1053, "live_parallel": 16, "live_parallel_multiple": 24}
MULTI = dict.fromkeys((f"multi_turn_{kind}" for kind in ("base", "miss_func", "miss_param", "long_context")), 200)
WEB = {"web_search_base": 100, "web_search_no_snippet": 100}
MEMORY = {"memory_kv": 155, "memory_vector": 155, "memory_rec_sum": 155}
SIZES = {
    **SIMPLE,
    **{"multiple": 200, "parallel": 200, "parallel_multiple": 200, "irrelevance": 240},
    **LIVE,
    **{"live_irrelevance": 884, "live_relevance": 16},
    **MULTI,
    **WEB,
    **MEMORY,
}
"""Tasks by category. live_relevance is run, but stands in no column."""
WEIGHTS = {"nolive": 0.1, "live": 0.1, "irrel": 0.1, "multi": 0.3, "agentic": 0.4}
COLUMNS = {
    **{f"bfcl_{name}": name for name in ("web", "memory", "multi", "nolive", "live", "overall")},
    "bfcl_irrelevance": "irrel",  # a name apart from that of the category
    **{f"mt_{kind}": f"multi_turn_{kind}" for kind in ("base", "miss_func", "miss_param", "long_context")},
    "mt_average": "multi",
}


def columns(categories: Mapping[str, float | None]) -> dict[str, float | None]:
    """The seven columns from percent by category (section "Averages" of docs/benchmarks.md). Null where a part is
    missing: the harness itself would count it as 0.
    """
    simple = mean(categories.get(name) for name in SIMPLE)
    groups = {
        "web": mean(categories.get(name) for name in WEB),
        "memory": mean(categories.get(name) for name in MEMORY),
        "multi": mean(categories.get(name) for name in MULTI),
        "nolive": mean([simple, *(categories.get(n) for n in ("multiple", "parallel", "parallel_multiple"))]),
        "live": _weighted({name: categories.get(name) for name in LIVE}),
        "irrel": mean(categories.get(name) for name in ("irrelevance", "live_irrelevance")),
    }
    return {**groups, "overall": overall(groups)}


def overall(groups: Mapping[str, float | None]) -> float | None:
    """The weighted mean of the groups; null unless all were run."""
    parts = {**groups, "agentic": mean([groups.get("web"), groups.get("memory")])}
    known = {name: value for name in WEIGHTS if (value := parts.get(name)) is not None}
    return sum(WEIGHTS[name] * value for name, value in known.items()) if len(known) == len(WEIGHTS) else None


def measure(rows: Sequence[Row], mode: Mode) -> dict[str, float | None]:
    """Percent by category, then by column."""
    found = by_category(rows)
    categories = {name: percent(found.get(name, ()), mode) for name in SIZES}
    return {**categories, **columns(categories)}


def _weighted(values: Mapping[str, float | None]) -> float | None:
    """Weighted by the number of tasks of the whole benchmark."""
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(values):
        return None
    return sum(LIVE[name] * value for name, value in known.items()) / sum(LIVE.values())


BFCL = Benchmark(
    name="bfcl",
    title="BFCL v4",
    package="bfcl-eval",
    version="2026.3.23",
    driver="driver.py",
    sizes=SIZES,
    measure=measure,
    columns=COLUMNS,
    needs={
        **dict.fromkeys(WEB, "the internet and a SerpAPI key, which the sandbox of executed tools has not: never run"),
        "memory_vector": "sentence-transformers and faiss in the venv, and the folder all-MiniLM-L6-v2 in the run's",
    },
    ignores={
        "--trials": "it runs each task once; give --runs instead",
        "--option": "it has no settings",
        "--user-url": "no simulated user takes part",
        "--judge-url": "no model judges",
    },
)
