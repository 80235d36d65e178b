"""The project: git, DVC and its cache, stores that were wiped, locks that are held."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.doctor.finding import Finding, ok, problem, warning
from envace.locks import LOCKS, holder, is_held
from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml

_CACHE = Path(".dvc/cache/files/md5")


def git_finding(root: Path) -> Finding:
    """The commit, and whether the files are those of it."""
    found = _git(root, "rev-parse", "--short", "HEAD")
    if found is None:
        todo = "`git init`, add and commit: without it a model's code is not recorded, and named runs are not possible"
        return warning("git", "there is no commit here", todo)
    changed = (_git(root, "status", "--porcelain", "--untracked-files=no") or "").splitlines()
    if changed:
        todo = "commit them before a run that you want to reproduce: a commit is what a version's lineage names"
        return warning("git", f"commit {found}, and {len(changed)} changed files", todo)
    return ok("git", f"commit {found}, no changed files")


def cache_finding(root: Path) -> Finding:
    """Whether the outputs that dvc.lock names can be restored."""
    if not (root / ".dvc").is_dir():
        return problem("dvc", "there is no .dvc folder here", "run from the project's root")
    lock = root / "dvc.lock"
    if not lock.is_file():
        return ok("dvc", "no dvc.lock yet: the first run writes it")
    try:
        stages = parse_plain_yaml(lock.read_text(encoding="utf-8"))["stages"]
        outs = [out for stage in stages.values() for out in stage.get("outs", [])]
        hashes = {out["path"]: str(out["md5"]) for out in outs}
    except (NotPlainYamlError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        todo = "delete it: the next run writes it anew, and finds outputs in the cache that it need not make again"
        return problem("dvc", f"{lock}: not a lock file ({error})", todo)
    cache = _cache_of(root)
    lost = [path for path, md5 in hashes.items() if not (cache / md5[:2] / md5[2:]).is_file()]
    if lost:
        todo = "`envace run` makes again what is also gone from the folders"
        return warning("dvc", f"{len(lost)} of {len(hashes)} outputs are not in the cache: {', '.join(lost[:3])}", todo)
    return ok("dvc", f"all {len(hashes)} outputs of dvc.lock are in the cache")


def store_finding(root: Path) -> Finding:
    """Whether MLflow's store still has the version that was registered last."""
    known, database = root / ".envace/registration.json", root / ".envace/mlflow/mlflow.db"
    if not known.is_file():
        return ok("mlflow", "nothing was registered yet")
    again = "`envace run` registers the policy again"
    try:
        ids = json.loads(known.read_text(encoding="utf-8"))
        name, version = str(ids["model_name"]), int(ids["version"])
    except (ValueError, KeyError, TypeError):
        return problem("mlflow", f"{known} is damaged", f"delete it: {again}")
    if not database.is_file():
        return warning("mlflow", f"the store with {name} version {version} is gone", again)
    counted = _count(database, name, version)
    if counted is None:
        return problem("mlflow", f"{database} cannot be read", f"move it away: {again}")
    if not counted:
        return warning("mlflow", f"the store has no {name} version {version}", again)
    return ok("mlflow", f"the store has {name} version {version}")


def locks(root: Path) -> Iterator[Finding]:
    """Who holds what at this moment, and what a killed process has left."""
    folder = root / LOCKS
    names = sorted(path.stem for path in folder.glob("*.lock")) if folder.is_dir() else []
    busy = [f"{name} (process {holder(name, folder=folder)})" for name in names if is_held(name, folder=folder)]
    if busy:
        yield warning("locks", f"held: {', '.join(busy)}", "a run is going on; a second one waits or is refused")
    else:
        yield ok("locks", "none is held")
    yield dvc_lock_finding(root / ".dvc/tmp/rwlock")


def dvc_lock_finding(path: Path) -> Finding:
    """DVC notes in this file who reads and writes what; one that was killed leaves its notes behind."""
    import psutil

    try:
        noted = json.loads(path.read_text(encoding="utf-8") or "{}") if path.is_file() else {}
        pids = set(_pids(noted))
    except (ValueError, UnicodeDecodeError):
        return problem("dvc lock", f"{path} is damaged", "delete it while no dvc runs")
    alive = sorted(pid for pid in pids if psutil.pid_exists(pid))
    if alive:
        return warning("dvc lock", f"dvc runs here as process {alive[0]}", "wait until it ends")
    if pids:
        return warning("dvc lock", f"left by killed process {min(pids)}", "nothing: the next dvc command clears it")
    return ok("dvc lock", "none is held")


def _pids(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "pid" and isinstance(inner, int):
                yield inner
            else:
                yield from _pids(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pids(inner)


def _count(database: Path, name: str, version: int) -> int | None:
    """Versions of that name and number; None where the file is no such store."""
    import sqlite3

    try:
        with sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=5) as store:
            question = "SELECT COUNT(*) FROM model_versions WHERE name = ? AND version = ?"
            return store.execute(question, (name, version)).fetchone()[0]
    except sqlite3.Error:
        return None


def _cache_of(root: Path) -> Path:
    """The cache's folder: the project's own, or the one that its local settings name (a worktree shares it)."""
    for settings in (root / ".dvc/config.local", root / ".dvc/config"):
        if settings.is_file():
            import configparser

            parser = configparser.ConfigParser(strict=False)
            try:
                parser.read_string("\n".join(x.strip() for x in settings.read_text(encoding="utf-8").splitlines()))
            except configparser.Error:
                continue
            if found := parser.get("cache", "dir", fallback=None):
                found = found.strip("\"'")  # DVC writes some values in quotes
                return (root / ".dvc" / found).resolve() / "files" / "md5"
    return root / _CACHE


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
