"""The only file that runs DVC: one stage at a time, as a command in a process group of its own."""

from __future__ import annotations

import json
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
from envace.files import write_text
from envace.processes import child_setup
from envace.quiet import be_quiet
from flows import group

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
    name: str,
    *,
    force: bool = False,
    log: Callable[[str], None] = print,
    root: Path = Path(),
    run_cache: bool = True,
) -> StageOutcome:
    """Bring one stage of `root`/dvc.yaml up to date, handing each line it prints to `log`.

    Without `run_cache`, DVC does not look for an earlier run with the same inputs. Raises StageError with the stage's
    own message if it fails. On any other exception, an interrupt included, the whole process group is ended and waited
    for before it goes on.
    """
    options = [*(["--force"] if force else []), *([] if run_cache else ["--no-run-cache"])]
    command = [sys.executable, "-m", "dvc", "repro", "--single-item", *options, name]
    started, outcome, tail = time.monotonic(), None, deque[str](maxlen=_TAIL_LINES)

    def on_line(line: str) -> None:
        nonlocal outcome
        outcome = _outcome_of(line, name) or outcome
        if not _CHATTER.match(line):
            tail.append(line)
            if not _VERDICT.match(line):
                log(line)

    if group.run(command, root, on_line):
        said = [line for line in tail if not _VERDICT.match(line)]
        raise StageError(f"stage {name} failed: {group.explanation(name, said or list(tail))}")
    if outcome is None:
        raise StageError(f"stage {name}: dvc ended well but did not say what it did; is its version the pinned one?")
    return StageOutcome(name, outcome, time.monotonic() - started)


def changed_stages(root: Path = Path()) -> set[str] | None:
    """The stages of which DVC would not say that nothing has changed, by what is there now; None where it cannot tell.

    One question for all stages, where `run_stage` starts a process for each.
    """
    be_quiet()
    command = [sys.executable, "-m", "dvc", "status", "--json"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, preexec_fn=child_setup(os.getpid())
    )
    try:
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        return None
    return set(found) if isinstance(found, dict) else None


def status(root: Path = Path()) -> int:
    """Print which stages are out of date and why. Returns dvc's exit code."""
    with group.start([sys.executable, "-m", "dvc", "status"], root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="")
    return process.returncode


def track(path: Path, root: Path = Path()) -> None:
    """Let DVC keep a file or folder that no stage makes (dvc add). Raises StageError in dvc's own words."""
    be_quiet()
    command = [sys.executable, "-m", "dvc", "add", "--quiet", str(path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StageError(f"dvc add {path}: {done.stderr.strip() or done.stdout.strip()}")


def cache_folder(root: Path) -> Path:
    """Where DVC keeps the outputs of this project, absolute. Raises StageError where `root` is no DVC project."""
    be_quiet()
    command = [sys.executable, "-m", "dvc", "cache", "dir"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StageError(f"{root.resolve()}: dvc does not say where its cache is: {done.stderr.strip()}")
    return (root / done.stdout.strip()).resolve()


def share_cache(folder: Path, cache: Path) -> None:
    """Let the DVC project in `folder` keep its outputs in `cache`, by its local settings, which are not in git."""
    quoted = str(cache).replace("\\", "\\\\").replace('"', '\\"')
    write_text(folder / ".dvc" / "config.local", f'[cache]\n    dir = "{quoted}"\n')


def _outcome_of(line: str, name: str) -> Literal["ran", "cached", "unchanged"] | None:
    for pattern, outcome in _OUTCOMES.items():
        found = re.match(pattern, line)
        if found and found[1] == name:
            return outcome
    return None
