"""Great Expectations over the flat tables of kept rows: an outside look at what our own checks let through."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import ValidateDataParams
from envace.data.checks.tools import MAX_TOOLS
from envace.data.flat import FlatRecord
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
    rows: list[FlatRecord], criteria: list[FlatRecord], params: ValidateDataParams, folder: Path = DOCS_FOLDER
) -> list[Outcome]:
    """Run both suites and build Data Docs in `folder`, which is made anew. Gives the outcomes in a fixed order."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read when the package is imported
    import great_expectations as gx
    import pandas as pd

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    context = gx.get_context(mode="file", project_root_dir=folder)
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = context.data_sources.add_pandas("kept")
    outcomes: list[Outcome] = []
    tables = {"rows": (rows, _row_rules(params)), "criteria": (criteria, _CRITERION_RULES)}
    for name, (records, rules) in tables.items():
        expectations = [_expectation(gx, rule) for rule in rules]
        batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
        definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
        result = definition.run(batch_parameters={"dataframe": pd.DataFrame.from_records(records)})
        outcomes += [_outcome(name, one) for one in result.results]
    context.build_data_docs()
    return sorted(outcomes, key=lambda o: (o.suite, o.about, o.expectation, o.severity))


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
        ("ExpectColumnValuesToBeBetween", "warning", {"column": "tools", "min_value": 1, "max_value": MAX_TOOLS}),
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
