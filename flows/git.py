"""The few git commands that a run of its own needs: a worktree on a branch, and a commit on it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from envace.errors import ConfigError, StageError

_NOBODY = ("-c", "user.name=envace", "-c", "user.email=envace@localhost")


def git(folder: Path, *arguments: str) -> str:
    """What a git command says. Raises StageError with git's own words where it fails."""
    # a hook or an editor's session may name another repository
    environment = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
    except FileNotFoundError:
        raise ConfigError("git is not installed; a run of its own needs it") from None
    if done.returncode:
        raise StageError(f"git {arguments[0]} in {folder} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def require_repository(root: Path) -> None:
    """Raises ConfigError where `root` is not the top of a git repository with a commit."""
    try:
        top = git(root, "rev-parse", "--show-toplevel")
        git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    except StageError:
        raise ConfigError(
            f"{root.resolve()}: not a git repository with a commit, which a run of its own needs (--name, --profile, "
            "--set, a deployment); run `git init && git add . && git commit`, or run in place with plain `envace run`"
        ) from None
    if Path(top).resolve() != root.resolve():
        raise ConfigError(f"{root.resolve()}: the git repository begins at {top}; it must be the project's own")


def has_branch(root: Path, branch: str) -> bool:
    """Whether the branch exists."""
    return bool(git(root, "branch", "--list", branch))


def uncommitted(root: Path, *paths: str) -> list[str]:
    """Those of the tracked files below `paths` (all, if none is given) that differ from the last commit."""
    lines = git(root, "status", "--porcelain", "--untracked-files=no", "--", *paths).splitlines()
    return [line.strip().split(maxsplit=1)[-1] for line in lines]


def worktrees(root: Path) -> set[Path]:
    """The folders that git knows as work trees of this repository."""
    lines = git(root, "worktree", "list", "--porcelain").splitlines()
    return {Path(line.removeprefix("worktree ")).resolve() for line in lines if line.startswith("worktree ")}


def has_trailer(root: Path, branch: str, key: str, value: str) -> bool:
    """Whether the message of a commit on the branch ends with this `key: value`."""
    # the search is for a part of a line only, so that what it finds is compared whole
    search = ("log", "--fixed-strings", f"--grep={key}: {value}", f"--format=%(trailers:key={key},valueonly)")
    return value in git(root, *search, branch, "--").splitlines()


def commit(folder: Path, message: str, *paths: str, allow_empty: bool = False) -> str | None:
    """Commit these files, also where they are ignored; the new commit, or None where nothing had changed.

    With `allow_empty` there is a commit in any case, for the sake of its message.
    """
    git(folder, "add", "--force", "--", *paths)
    if not allow_empty and not git(folder, "diff", "--cached", "--name-only", "--", *paths):
        return None
    empty = ("--allow-empty",) if allow_empty else ()
    who = () if _knows_who(folder) else _NOBODY
    # the user's hooks and signing are for what a person writes
    options = ("--no-verify", "--quiet", *empty, "-m", message)
    git(folder, *who, "-c", "commit.gpgsign=false", "commit", *options, "--", *paths)
    return git(folder, "rev-parse", "HEAD")


def _knows_who(folder: Path) -> bool:
    try:
        return bool(git(folder, "config", "user.name") and git(folder, "config", "user.email"))
    except StageError:
        return False
