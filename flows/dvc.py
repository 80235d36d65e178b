"""The only file that runs DVC: one stage at a time, as a command in a process group of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envace.errors import StageError
from envace.processes import child_setup, end_group
from envace.quiet import be_quiet

STAGES = (
    "fetch_data",
    "validate_data",
    "prepare_data",
    "build_base_model",
    "train_policy",
    "evaluate_policy",
    "register_model",
    "write_report",
)
_OUTCOMES: dict[str, Literal["ran", "cached", "unchanged"]] = {
    r"Running stage '(.+)'": "ran",
    r"Stage '(.+)' is cached - skipping run": "cached",
    r"Stage '(.+)' didn't change, skipping": "unchanged",
}
_CHATTER = re.compile(
    r"Running stage|> |Stage '|Updating lock file|Generating lock file|To track the changes|To enable auto|"
    r"\tgit add|\tdvc config|Use `dvc push`|Data and pipelines|Verifying|$"
)
_VERDICT = re.compile(r"ERROR: failed to reproduce '.+': failed to run: ")  # adds nothing to the stage's own words
_GRACE_S = 20.0
_TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """What DVC did with a stage: it ran, its outputs came from the cache, or nothing had changed."""

    stage: str
    outcome: Literal["ran", "cached", "unchanged"]
    seconds: float

    @property
    def ran(self) -> bool:
        """True where the stage's own command ran."""
        return self.outcome == "ran"


def run_stage(
    name: str, *, force: bool = False, log: Callable[[str], None] = print, root: Path = Path()
) -> StageOutcome:
    """Bring one stage of `root`/dvc.yaml up to date, handing each line it prints to `log`.

    Raises StageError with the stage's own message if it fails. On any other exception, an interrupt included, the
    whole process group is ended and waited for before it goes on.
    """
    command = [sys.executable, "-m", "dvc", "repro", "--single-item", *(["--force"] if force else []), name]
    started, outcome, tail = time.monotonic(), None, deque[str](maxlen=_TAIL_LINES)
    process = _start(command, root)
    assert process.stdout is not None
    try:
        for raw in process.stdout:
            line = raw.rstrip()
            outcome = _outcome_of(line, name) or outcome
            if not _CHATTER.match(line):
                tail.append(line)
                if not _VERDICT.match(line):
                    log(line)
        code = process.wait()
    except BaseException:
        end_group(process.pid, grace_s=_GRACE_S)
        process.wait()
        raise
    if code:
        raise StageError(f"stage {name} failed: {_explanation(name, list(tail))}")
    if outcome is None:
        raise StageError(f"stage {name}: dvc ended well but did not say what it did; is its version the pinned one?")
    return StageOutcome(name, outcome, time.monotonic() - started)


def status(root: Path = Path()) -> int:
    """Print which stages are out of date and why. Returns dvc's exit code."""
    with _start([sys.executable, "-m", "dvc", "status"], root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="")
    return process.returncode


def _start(command: list[str], root: Path) -> subprocess.Popen[str]:
    be_quiet()
    return subprocess.Popen(
        command,
        cwd=root,
        # one that is set stays: the GPU image runs its stages in another venv than the pipeline
        env={"ENVACE_PYTHON": sys.executable, **os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=child_setup(os.getpid()),
    )


def _outcome_of(line: str, name: str) -> Literal["ran", "cached", "unchanged"] | None:
    for pattern, outcome in _OUTCOMES.items():
        found = re.match(pattern, line)
        if found and found[1] == name:
            return outcome
    return None


def _explanation(name: str, tail: list[str]) -> str:
    """The stage's own message where it gave one, else the last line of its traceback, else what dvc said."""
    said = [line for line in tail if not _VERDICT.match(line)]
    own = [i for i, line in enumerate(said) if line.startswith(f"{name}: ")]
    if own:
        return "\n".join([said[own[-1]].removeprefix(f"{name}: "), *said[own[-1] + 1 :]])
    if any(line.startswith("Traceback ") for line in said):
        return f"{said[-1]} (a bug; its traceback is above)"
    return "\n".join((said or tail)[-5:])
