"""`envace run`: the retrain flow from the command line, live progress, and a short summary at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envace.config import load_params
from envace.errors import ConfigError
from envace.files import read_json
from envace.processes import Terminated
from flows.dvc import STAGES, StageOutcome
from flows.foreground import prepared
from flows.git import require_repository, uncommitted
from flows.progress import say
from flows.run_process import run_name
from flows.workspace import WORKTREES, check_name, check_parameters


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked for on the command line. With a name, a profile or values the run works in a worktree of its own,
    else in place.
    """

    force: list[str] = field(default_factory=list)
    name: str | None = None
    profile: str | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def in_place(self) -> bool:
        """Whether it works in the project's folder itself."""
        return not (self.name or self.profile or self.values)


def run_pipeline(request: RunRequest, root: Path = Path()) -> None:
    """Run the flow over the project in the working directory. Raises ConfigError before anything starts."""
    name = request.name or run_name()
    _check(request, name, root)
    began = time.monotonic()
    retrain = prepared(_load, root)
    try:
        if request.in_place:
            folder, outcomes = root, retrain(request.force, in_place=True)
        else:
            folder = root / WORKTREES / name
            outcomes = retrain(request.force, name, request.profile, request.values)
    except (KeyboardInterrupt, Terminated):
        again = "" if request.in_place else f" with --name {name}"
        say(f"stopped; run again{again} to go on from here")
        raise
    for text in summary(outcomes, time.monotonic() - began, folder):
        say(text)
    if not request.in_place:
        say(f"kept:    branch runs/{name}")


def _load() -> Any:
    from flows.retrain import retrain

    return retrain


def _check(request: RunRequest, name: str, root: Path) -> None:
    unknown = [stage for stage in request.force if stage not in STAGES]
    if unknown:
        raise ConfigError(f"--force {unknown[0]}: no such stage; the stages are {', '.join(STAGES)}")
    if request.in_place:
        load_params(root / "params.yaml")
        return
    check_name(name)
    require_repository(root)
    check_parameters(root, request.profile, request.values)
    if changed := uncommitted(root):
        say(f"not part of this run, since not committed: {', '.join(changed)}")


def summary(outcomes: list[StageOutcome], seconds: float, root: Path) -> list[str]:
    """The last lines of a run: what was done, base against trained, and where to look."""
    from envace.report.headline import headline, table

    ran = sum(o.ran for o in outcomes)
    restored = sum(o.outcome == "cached" for o in outcomes)
    if not ran and not restored:
        done = "nothing changed: 0 stages run"
    else:
        done = f"{ran} stages run, {restored} restored from the cache, {len(outcomes) - ran - restored} unchanged"
    return ["", f"{done} ({seconds:.0f} s)", "", *table(headline(root)), "", *_where(root)]


def _where(root: Path) -> list[str]:
    page = root / "reports/run/index.html"
    lines = [f"report:  {page}"] if page.is_file() else []
    ids = root / ".envace" / "registration.json"
    if ids.is_file():
        known = read_json(ids)
        aliases = ", ".join(known["aliases"]) or "no alias"
        lines.append(f"model:   {known['model_name']} version {known['version']} ({aliases})")
        if known.get("refusal"):
            lines.append(f"         not made champion: {known['refusal']}")
    return [*lines, "look:    make ui (the runs and the model in MLflow, this flow in Prefect)"]
