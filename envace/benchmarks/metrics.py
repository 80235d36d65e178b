"""Figures of one run from its rows: official and strict percent by category, and how the tasks ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from envace.benchmarks.harness import Benchmark, Mode
from envace.benchmarks.protocol import Counts, DriverReport, Metrics, Row, Spec
from envace.errors import BenchmarkError

_SAME = 0.005
"""Percent points: harnesses print two decimals."""


def by_category(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each category, in the order of their first appearance."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.category].append(row)
    return dict(found)


def percent(rows: Sequence[Row], mode: Mode) -> float | None:
    """Percent over the rows of one category, or null where none of it was run.

    official: the mean over what the harness counts. strict: over all rows, so also over those that a stopped run did
    not come to: 0 unless properly scored.
    """
    if mode == "official":
        scores = [row.score for row in rows if row.official_counted and row.score is not None]
    else:
        scores = [row.strict for row in rows] if any(row.status != "not_run" for row in rows) else []
    return 100 * sum(scores) / len(scores) if scores else None


def mean(values: Iterable[float | None]) -> float | None:
    """The mean, or null if any part is null (or there is none): a missing group is never a 0."""
    known = list(values)
    numbers = [value for value in known if value is not None]
    return sum(numbers) / len(numbers) if known and len(numbers) == len(known) else None


def metrics(benchmark: Benchmark, spec: Spec, rows: Sequence[Row], report: DriverReport) -> Metrics:
    """metrics.json. Raises BenchmarkError where the rows do not give what the harness printed."""
    _same_as_printed(by_category(rows), report)
    counts = _counts(benchmark, by_category(rows), spec)
    return Metrics(
        benchmark=benchmark.name,
        agent=spec.agent.kind,
        run=spec.run,
        trials=spec.trials,
        official=_rounded(benchmark.measure(rows, "official")),
        strict=_rounded(benchmark.measure(rows, "strict")),
        counts=counts,
        not_run=_reasons(benchmark, by_category(rows)),
        subset=any(_is_partial(count) for count in counts.values()),
        aborted=report.aborted,
    )


def _counts(benchmark: Benchmark, rows: Mapping[str, Sequence[Row]], spec: Spec) -> dict[str, Counts]:
    found = {}
    for category, size in benchmark.sizes.items():
        ended: dict[str, int] = defaultdict(int)
        for row in rows.get(category, ()):
            ended[row.status] += 1
        found[category] = Counts(expected=size * spec.trials, **ended)
    return found


def _is_partial(count: Counts) -> bool:
    run = count.scored + count.model_failure + count.infra_failure
    return 0 < run < count.expected


def _reasons(benchmark: Benchmark, rows: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    reasons = {}
    for category in benchmark.sizes:
        mine = rows.get(category, ())
        if all(row.status == "not_run" for row in mine):
            reasons[category] = next((row.reason for row in mine if row.reason), "not chosen")
    return reasons


def _same_as_printed(rows: Mapping[str, Sequence[Row]], report: DriverReport) -> None:
    for category, printed in report.official.items():
        ours = percent(rows.get(category, ()), "official")
        if ours is None or abs(ours - printed) > _SAME:
            raise BenchmarkError(
                f"{category}: the harness printed {printed:.3f} %, the rows give {ours}; "
                "they do not describe the same run, so nothing is reported"
            )


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 4) for name, value in values.items()}
