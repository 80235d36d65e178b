"""Great Expectations over the flat tables of kept rows: an outside look at what our own checks let through."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envace.config import ValidateDataParams
from envace.data.schema_names import FOCUS

DOCS_FOLDER = Path(".envace/great_expectations")
Rule = tuple[str, str, dict[str, Any]]
"""An expectation as data: the name of its class, its severity, and what it is about."""


@dataclass(frozen=True)
class Outcome:
    """What one expectation came to. `unexpected` counts the values that broke it."""

    suite: str
    expectation: str
    about: str
    severity: str
    success: bool
    unexpected: int


def run_expectations(
    tables: dict[str, Path], params: ValidateDataParams, folder: Path = DOCS_FOLDER, rows_per_batch: int = 100_000
) -> list[Outcome]:
    """Run the suites of the flat tables (`rows` and `criteria`, Parquet) and build Data Docs in `folder`, made anew.

    Each batch of rows is validated for itself, so that memory does not grow with the data. Gives the outcomes over all
    batches in a fixed order.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read when the package is imported
    import great_expectations as gx
    import pyarrow.parquet as pq

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    context = gx.get_context(mode="file", project_root_dir=folder)
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = context.data_sources.add_pandas("kept")
    outcomes: list[Outcome] = []
    rules = {"rows": _row_rules(params), "criteria": _CRITERION_RULES}
    for name, path in tables.items():
        expectations = [_expectation(gx, rule) for rule in rules[name]]
        batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
        definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
        for records in pq.ParquetFile(path).iter_batches(batch_size=rows_per_batch):
            result = definition.run(batch_parameters={"dataframe": records.to_pandas()})
            outcomes += [_outcome(name, one) for one in result.results]
    context.build_data_docs()
    return _over_batches(outcomes)


def _over_batches(outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome an expectation: it holds where it holds for every batch."""
    joined: dict[tuple[str, str, str, str], Outcome] = {}
    for one in outcomes:
        key = (one.suite, one.about, one.expectation, one.severity)
        before = joined.get(key)
        if before:
            one = replace(one, success=one.success and before.success, unexpected=one.unexpected + before.unexpected)
        joined[key] = one
    return [joined[key] for key in sorted(joined)]


def _row_rules(params: ValidateDataParams) -> list[Rule]:
    limits = {"turns": None, "messages": None, "tools": None, "row_bytes": params.max_row_bytes}
    counts: list[Rule] = [
        ("ExpectColumnValuesToBeBetween", "critical", {"column": column, "min_value": 1, "max_value": limit})
        for column, limit in limits.items()
    ]
    calls_and_results = {"column_A": "calls", "column_B": "results"}
    items_and_turns = {"column_A": "items", "column_B": "turns", "or_equal": True}
    return [
        ("ExpectColumnValuesToNotBeNull", "critical", {"column": "task_id"}),
        ("ExpectColumnValuesToBeUnique", "critical", {"column": "task_id"}),
        ("ExpectColumnValueLengthsToBeBetween", "critical", {"column": "task_id", "min_value": 1, "max_value": 128}),
        *counts,
        ("ExpectColumnPairValuesToBeEqual", "critical", calls_and_results),
        ("ExpectColumnPairValuesAToBeGreaterThanB", "critical", items_and_turns),
        (
            "ExpectColumnValuesToBeBetween",
            "warning",
            {"column": "tools", "min_value": 1, "max_value": params.max_tools},
        ),
        ("ExpectColumnValuesToBeBetween", "warning", {"column": "turns", "min_value": 1, "max_value": 30}),
    ]


_CRITERION_RULES: list[Rule] = [
    ("ExpectColumnValuesToBeUnique", "critical", {"column": "criterion"}),
    ("ExpectColumnValuesToBeInSet", "critical", {"column": "focus", "value_set": list(FOCUS)}),
    (
        "ExpectColumnValuesToBeBetween",
        "critical",
        {"column": "weight", "min_value": 0, "max_value": 1, "strict_min": True},
    ),
    ("ExpectColumnValuesToBeInSet", "critical", {"column": "is_gating", "value_set": [True, False]}),
]


def _expectation(gx: Any, rule: Rule) -> Any:
    from great_expectations.expectations.metadata_types import FailureSeverity

    kind, severity, about = rule
    return getattr(gx.expectations, kind)(severity=FailureSeverity(severity), **about)


def _outcome(suite: str, result: Any) -> Outcome:
    config = result.expectation_config
    kwargs = config.kwargs
    about = kwargs.get("column") or f"{kwargs.get('column_A')}, {kwargs.get('column_B')}"
    unexpected = int(result.result.get("unexpected_count") or 0)
    severity = str(getattr(config.severity, "value", config.severity))
    return Outcome(suite, config.type, about, severity, bool(result.success), unexpected)
