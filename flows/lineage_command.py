"""`envace lineage NAME/VERSION`: where a registered version comes from, with every hash computed again."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.data_commands import told_errors

if TYPE_CHECKING:
    from envace.tracking.lineage import Lineage
    from envace.tracking.verification import Check

Version = Annotated[
    str, typer.Argument(help="NAME/VERSION of a registered model; an alias will do, as in NAME/champion.")
]
_WORDS = {"ok": "OK", "missing": "MISSING", "differs": "DIFFERS"}
_SEEDS = (
    "sample {fetch_data.sample}, base model {build_base_model}, training {train_policy}, evaluation {evaluate_policy}"
)


def lineage(
    version: Version,
    as_json: Annotated[bool, typer.Option("--json", help="The same as one JSON object on stdout.")] = False,
) -> None:
    """Print git commit, dvc.lock, data, parameters, judge, seeds and figures of a version, and verify every hash.

    Exit code 0 where all is as recorded, 1 where something is missing or differs, 2 where the version is not known.
    """
    with told_errors():
        from envace.progress import progress
        from envace.tracking.lineage import read_lineage
        from envace.tracking.verification import verify

        root = Path()
        found = read_lineage(*parts_of(version), root)
        with progress("reading what the version comes from") as report:
            total = 0

            def seen(size: int) -> None:
                nonlocal total
                total += size
                report(total, 0)

            checks = list(verify(found, root, cache_of(root), seen))
    wrong = [check for check in checks if check.status != "ok"]
    if as_json:
        print(json.dumps({**facts(found), "checks": [asdict(c) for c in checks], "verified": not wrong}, indent=2))
    else:
        for line in [*described(found), "", *table(checks)]:
            print(line)
    raise typer.Exit(1 if wrong else 0)


def parts_of(version: str) -> tuple[str, str]:
    """NAME and VERSION. Raises TrackingError where it is not both."""
    from envace.errors import TrackingError

    name, slash, number = version.rpartition("/")
    if not (slash and name and number):
        raise TrackingError(f"{version}: expected NAME/VERSION, for example envace-tiny/1 or envace-tiny/champion")
    return name, number


def cache_of(root: Path) -> Path | None:
    """DVC's cache, None where the folder is no DVC project."""
    from flows.dvc import cache_folder

    return cache_folder(root) if (root / ".dvc").is_dir() else None


def facts(found: Lineage) -> dict[str, Any]:
    """What was recorded, as one JSON object."""
    return {
        "name": found.name,
        "version": found.version,
        "aliases": found.aliases,
        "gate": found.tags.get("gate"),
        "runs": {key: found.tags.get(key) for key in ("run_id", "flow_run", "prefect_run")},
        "model_sha256": found.tags.get("model_sha256"),
        "benchmark_sha256": found.tags.get("benchmark_sha256"),
        "later_evaluation": {key: found.tags[key] for key in sorted(found.tags) if key.startswith("evaluated_")}
        or None,
        "dvc_lock_sha256": found.tags.get("dvc_lock_sha256"),
        **found.record,
        "metrics": {key: value for key, value in found.metrics.items() if key.startswith("evaluation/")},
        "outputs": {path: content for stage in found.lock for path, content in stage.outs.items()},
    }


def described(found: Lineage) -> list[str]:
    """The same for a person, the figures cut down to the held-out ones."""
    record, tags = found.record, found.tags
    judge = record["judge"]
    asked = f" {judge['model']} at {judge['base_url']}" if judge["model"] else ""
    code = record["git_commit"] or "none: registered outside git"
    if record["uncommitted_code"]:
        code += f" with {len(record['uncommitted_code'])} files changed and not committed"
    rows = {
        "version": f"{found.where} ({', '.join(found.aliases) or 'no alias'}; gate: {tags.get('gate', 'not asked')})",
        "model": f"sha256 {tags.get('model_sha256')}",
        "git commit": code,
        "dvc.lock": f"sha256 {tags.get('dvc_lock_sha256', 'none: registered without one')}",
        "parameters": f"sha256 {record['params_sha256']} (profile {record['profile']})",
        **{f"data {path}": f"md5 {content}" for path, content in record["inputs"].items()},
        "judge": f"{judge['kind']}{asked} (reward: {judge['reward']})",
        "seeds": ", ".join(f"{key} {seed}" for key, seed in record["seeds"].items()),
        "benchmark": f"sha256 {tags.get('benchmark_sha256')}",
        **{f"held-out {policy}": words for policy, words in _figures(found.metrics)},
        **_later(tags),
        "MLflow run": tags.get("run_id", ""),
        **{what: tags[key] for what, key in (("flow run", "flow_run"), ("Prefect run", "prefect_run")) if key in tags},
    }
    width = max(map(len, rows))
    return [f"{what:<{width}}  {value}" for what, value in rows.items()]


def table(checks: list[Check]) -> list[str]:
    """One line a check, and what they come to."""
    width = max(len(check.what) for check in checks)
    lines = [f"{_WORDS[check.status]:<7}  {check.what:<{width}}  {check.detail}" for check in checks]
    wrong = [check.what for check in checks if check.status != "ok"]
    total = f"all {len(checks)} checks passed" if not wrong else f"not verified: {', '.join(wrong)}"
    return [*lines, "", total]


def _figures(metrics: dict[str, float]) -> list[tuple[str, str]]:
    found = []
    for policy in ("trained", "base"):
        at = f"evaluation/{policy}.heldout.true."
        said = [f"{figure} {metrics[at + figure]:.4f}" for figure in ("reward", "success") if at + figure in metrics]
        found.append((policy, ", ".join(said) or "not measured"))
    return found


def _later(tags: dict[str, str]) -> dict[str, str]:
    if "evaluated_benchmark_sha256" not in tags:
        return {}
    figures = ", ".join(f"{figure} {tags.get(f'evaluated_{figure}', '?')}" for figure in ("reward", "success"))
    return {"evaluated later": f"{figures}, on benchmark {tags['evaluated_benchmark_sha256']}"}


def tell(text: str) -> None:
    """A line of progress, on stderr."""
    print(text, file=sys.stderr, flush=True)
