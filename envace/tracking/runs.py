"""Runs of MLflow that always end: as FINISHED, FAILED or KILLED, the last also after a kill that nobody could catch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from mlflow import MlflowClient

OWNER = "envace.owner"
PARENT = "mlflow.parentRunId"
NO_REPOSITORY = {"mlflow.source.git.repoURL": "", "mlflow.source.name": "", "mlflow.user": ""}
"""What MLflow would fill in by itself: a remote's address may hold a password, the others are this machine's."""
_PAGE = 1000


def start_run(
    client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str], start_ms: int | None = None
) -> str:
    """A run with these tags and no others, known to be this process's own. Returns its id."""
    end_abandoned(client, experiment)
    mine = {**tags, OWNER: _owner()}
    return client.create_run(experiment, start_time=start_ms, tags=mine, run_name=name).info.run_id


@contextmanager
def tracked_run(client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[str]:
    """A run for the length of the block, its id given; also the one that MLflow's own functions write to.

    Ends as FINISHED, as FAILED after an error, as KILLED after an interrupt.
    """
    import mlflow

    run_id = start_run(client, experiment, name, tags)
    mlflow.start_run(run_id=run_id)
    try:
        yield run_id
    except Exception:
        mlflow.end_run("FAILED")
        raise
    except BaseException:
        mlflow.end_run("KILLED")
        raise
    mlflow.end_run("FINISHED")


def end_abandoned(client: MlflowClient, experiment: str) -> list[str]:
    """End the runs whose process is gone (SIGKILL, a machine that went down) as KILLED. Returns their ids."""
    running = client.search_runs([experiment], "attributes.status = 'RUNNING'", max_results=_PAGE)
    left = [run.info.run_id for run in running if run.data.tags.get(OWNER) and not _is_alive(run.data.tags[OWNER])]
    for run_id in left:
        client.set_terminated(run_id, "KILLED")
    return left


def _owner() -> str:
    return f"{os.getpid()} {psutil.Process().create_time():.2f}"


def _is_alive(owner: str) -> bool:
    """False where that process has ended, or its number belongs to a later one."""
    pid, _, began = owner.partition(" ")
    try:
        process = psutil.Process(int(pid))
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - float(began)) < 1.0
    except (psutil.NoSuchProcess, ValueError):
        return False
    except psutil.AccessDenied:
        return True
