"""A flow as a run of MLflow, with a child run for each stage. Written from outside: no stage and no output knows of it.

A flow in which no stage had anything to do leaves no run, so that looking whether all is up to date costs nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.files import sha256_file
from envace.tracking.code_state import git_commit
from envace.tracking.provenance import params_sha256
from envace.tracking.secrets import scrub_of

if TYPE_CHECKING:
    from envace.tracking.flow_store import FlowStore

OPEN_AFTER_S = 10.0
"""A stage that takes longer has something to do and is shown while it runs; looking at an unchanged one is shorter."""
LOOK_EVERY_S = 30.0
"""How often one that runs is brought up to date: the curve of a training grows meanwhile."""
_LOCK_FILE = "dvc.lock"


@dataclass(slots=True)
class StageRun:
    """One stage of the flow. Whoever runs it sets `outcome` to what DVC did: ran, cached or unchanged."""

    name: str
    began_ms: int
    outcome: str = "unchanged"
    status: str = "RUNNING"
    error: str | None = None
    ended_ms: int | None = None
    run_id: str | None = None
    is_written: bool = False


@dataclass
class FlowRun:
    """The record of one flow over the project in `root`. `say` is told, once, where MLflow cannot be written."""

    name: str
    params: Params
    root: Path
    tags: Mapping[str, str]
    say: Callable[[str], None]
    stages: list[StageRun] = field(default_factory=list)
    _store: FlowStore | None = None
    _is_broken: bool = False
    _guard: Any = field(default_factory=threading.RLock)
    _began_ms: int = field(default_factory=lambda: _now())

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRun]:
        """Record a stage that runs in the block: FINISHED, FAILED after an error, KILLED after an interrupt."""
        stage = StageRun(name, _now())
        self.stages.append(stage)
        over = threading.Event()
        threading.Thread(target=self._keep_up, args=[stage, over], daemon=True).start()
        try:
            yield stage
            stage.status = "FINISHED"
        except Exception as error:
            stage.status, stage.error = "FAILED", str(error)
            raise
        except BaseException:
            stage.status = "KILLED"
            raise
        finally:
            over.set()
            stage.ended_ms = _now()
            if self._store is not None or self._is_worth_telling(stage):
                self._write(stage)

    def finish(self, status: str) -> None:
        """End the flow's own run, if there was anything to tell."""
        with self._guard:
            if self._store is None:
                return
            lock = self.root / _LOCK_FILE
            ended = {"dvc_lock_sha256": sha256_file(lock)} if lock.is_file() else {}
            self._try(lambda store: store.finish(status, ended, lock))

    def _keep_up(self, stage: StageRun, over: threading.Event) -> None:
        wait_s = OPEN_AFTER_S
        while not over.wait(wait_s):
            self._write(stage)
            wait_s = LOOK_EVERY_S

    def _is_worth_telling(self, stage: StageRun) -> bool:
        """Whether it is worth opening the store: not for an unchanged stage, nor while an interrupt waits."""
        return stage.status == "FAILED" or (stage.status == "FINISHED" and stage.outcome != "unchanged")

    def _write(self, upto: StageRun) -> None:
        """Bring the stages up to this one into the store; those that were unchanged wait for the first that was not."""
        with self._guard:
            for stage in self.stages[: self.stages.index(upto) + 1]:
                self._try(lambda store, stage=stage: store.write(stage))

    def _try(self, action: Callable[[FlowStore], None]) -> None:
        if self._is_broken:
            return
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        from envace.errors import EnvaceError

        try:
            action(self._opened())
        except (MlflowException, SQLAlchemyError, EnvaceError, OSError) as error:
            # the flow's work is worth more than its record; the registration will fail by itself if it has to
            self._is_broken = True
            self.say(f"this run is not recorded in MLflow: {' '.join(str(error).split())[:300]}")

    def _opened(self) -> FlowStore:
        from envace.tracking.flow_store import FlowStore

        if self._store is None:
            commit = git_commit(self.root)
            tags = {**self.tags, "profile": self.params.profile, "params_sha256": params_sha256(self.params)}
            tags |= {"git_commit": commit} if commit else {}
            scrub = scrub_of(self.params.model_dump(mode="json"))
            self._store = FlowStore.open(self.root, self.params, self.name, tags, self._began_ms, scrub)
        return self._store


@contextmanager
def flow_run(
    name: str,
    params: Params,
    root: Path = Path(),
    tags: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> Iterator[FlowRun]:
    """Record the flow that runs in the block. It ends as FINISHED, FAILED or KILLED, as the block does."""
    record = FlowRun(name, params, root, tags or {}, say)
    try:
        yield record
    except Exception:
        record.finish("FAILED")
        raise
    except BaseException:
        record.finish("KILLED")
        raise
    record.finish("FINISHED")


def _now() -> int:
    return int(time.time() * 1000)
