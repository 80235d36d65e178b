"""`envace run`: the retrain flow with an API of its own, live progress, and a short summary at the end."""

from __future__ import annotations

import atexit
import time
from pathlib import Path

from envace.config import load_params
from envace.errors import ConfigError
from envace.files import read_json
from envace.processes import Terminated, adopt_orphans, end_descendants, unwind_on_signals
from flows.dvc import STAGES, StageOutcome
from flows.progress import say
from flows.server import start_server, wait_for_server

_UNWIND_S = 45.0  # a stage has 20 s to clean up, the API 10 s to stop


def run_pipeline(force: list[str], root: Path = Path()) -> None:
    """Run the flow over the project in the working directory. Raises ConfigError before anything starts."""
    load_params(root / "params.yaml")
    unknown = [name for name in force if name not in STAGES]
    if unknown:
        raise ConfigError(f"--force {unknown[0]}: no such stage; the stages are {', '.join(STAGES)}")
    adopt_orphans()
    atexit.register(end_descendants)  # first in, last out: after Prefect and its server have gone in order
    unwind_on_signals(_UNWIND_S)
    began = time.monotonic()
    server = start_server(root)
    say("starting Prefect (its records are kept in .envace/prefect)")
    from flows.retrain import retrain  # takes its seconds while the server takes its own

    if server is not None:
        wait_for_server(server)
    try:
        outcomes = retrain(force)
    except (KeyboardInterrupt, Terminated):
        say("stopped; run again to go on from here")
        raise
    for text in summary(outcomes, time.monotonic() - began, root):
        say(text)


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
    page = Path("reports/run/index.html")
    lines = [f"report:  {page}"] if (root / page).is_file() else []
    ids = root / ".envace" / "registration.json"
    if ids.is_file():
        known = read_json(ids)
        aliases = ", ".join(known["aliases"]) or "no alias"
        lines.append(f"model:   {known['model_name']} version {known['version']} ({aliases})")
    return [*lines, "look:    make ui (the runs and the model in MLflow, this flow in Prefect)"]
