"""Stage build_base_model: the policy that training starts from, and the two policies that results are shown beside."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.files import atomic_path, write_json
from envace.stage import stage_main

BASE, REFERENCES, REPORT = Path("models/base"), Path("models/references"), Path("reports/base_model/metrics.json")


def run(params: Params) -> None:
    """Write models/base, models/references and reports/base_model/metrics.json."""
    from envace.training.base_model.provide import provide_base

    with atomic_path(BASE) as base, atomic_path(REFERENCES) as references:
        record = provide_base(params.build_base_model, params.fetch_data.sample, base, references)
    write_json(REPORT, record)
    size = f", {record['parameters']:,} parameters" if "parameters" in record else ""
    print(f"base policy ready{size}; it starts from: {record['warm_start']}")


if __name__ == "__main__":
    stage_main("build_base_model", run)
