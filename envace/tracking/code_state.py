"""The code that a run used, as git knows it: the commit, what differs from it, and the content of its files."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

from envace.errors import TrackingError

CODE = ("envace", "pipeline_steps", "bin", "constraints", "dvc.yaml", "accepted_profile.json")
"""What decides a run's results besides params.yaml and the data. flows/ only says when a stage runs."""


def git_commit(root: Path = Path()) -> str | None:
    """The commit checked out at `root`, or None outside git or before the first commit."""
    return (_git(root, "rev-parse", "--verify", "--quiet", "HEAD") or b"").decode().strip() or None


def uncommitted_code(root: Path = Path()) -> list[str]:
    """Files of `CODE` that differ from the commit or are not in it, by path from `root`. Empty outside git."""
    here = (_git(root, "rev-parse", "--show-prefix") or b"").decode().strip()
    said = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *CODE) or b""
    return sorted(entry[3:].removeprefix(here) for entry in said.decode("utf-8", "replace").split("\0") if entry)


def has_commit(root: Path, commit: str) -> bool:
    """Whether the repository at `root` holds the commit."""
    return _git(root, "cat-file", "-e", commit + "^{commit}") is not None


def code_at(root: Path, commit: str) -> dict[str, str]:
    """Path to MD5 of every file of a commit. Raises TrackingError where this repository does not hold it."""
    packed = _git(root, "archive", "--format=tar", commit)
    if packed is None:
        raise TrackingError(f"commit {commit} is not in the git repository at {root.resolve()}; fetch it")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {n: hashlib.md5(f.read(), usedforsecurity=False).hexdigest() for n, f in files.items() if f is not None}


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints, None where it fails or is not there."""
    # a hook may have named another repository
    environment = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False, env=environment)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
