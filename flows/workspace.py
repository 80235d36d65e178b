"""A run of its own: a git worktree under .envace/worktrees, which shares DVC's cache and .envace with the project.

Its branch `runs/<name>` holds the parameters before the run starts and dvc.lock when it has ended; the message of that
commit says so. The project's own files and the branch that is checked out there are never touched.
"""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params, load_params, parse_params
from envace.errors import ConfigError, EnvaceError, StageError
from envace.files import write_text
from envace.profiles import fill_in, merged
from flows.dvc import cache_folder, share_cache
from flows.git import commit, git, has_branch, has_trailer, require_repository, worktrees
from flows.profile_files import profile_text

WORKTREES = Path(".envace/worktrees")
KEEP = 3
"""Worktrees of ended runs that stay, to be looked at, and as many of runs that failed; older ones go. Their branches
and cached outputs stay, so that a run whose worktree has gone still goes on when its name is given again."""
EVALUATION = "evaluation"
"""The worktree in which deployments evaluate: it only prepares the tasks, and nothing of it is kept."""
_ENDED = "Envace-Run"
"""Trailer of the commit that ends a run, with its name: a branch may have begun at the branch of another run."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one run works, and the branch that keeps it."""

    name: str
    folder: Path
    branch: str

    def keep(self) -> str | None:
        """Commit what the run has made, as its end. Returns the new commit, None where it had ended with just this.

        The worktree lets go of the branch, so that it can be checked out in the project.
        """
        message = f"Run {self.name}\n\n{_ENDED}: {self.name}"
        is_first = not ended(self.folder, self.name)
        made = commit(self.folder, message, "params.yaml", "dvc.lock", allow_empty=is_first)
        git(self.folder, "checkout", "--quiet", "--detach")
        return made


def open_workspace(
    root: Path, name: str, profile: str | None = None, values: Mapping[str, Any] | None = None
) -> Workspace:
    """Make the worktree of run `name`, or go on in it, with its parameters committed.

    A new one starts from the commit that is checked out in `root`; so does one of a run that has never ended. The
    parameters are those of that commit, with `profile` merged over them and `values` (by key, like
    {"train_policy.steps": 5}) put in. Raises ConfigError.
    """
    _check_spelling(name)
    require_repository(root)
    place = Workspace(name, (root / WORKTREES / name).resolve(), f"runs/{name}")
    is_new = not has_branch(root, place.branch)
    _check_out(root, place)
    try:
        _furnish(root, place, profile, values or {})
    except EnvaceError:
        if is_new:
            _take_away(root, place)
        raise
    return place


def check_name(name: str) -> None:
    """Raises ConfigError where a run of the user cannot have this name."""
    _check_spelling(name)
    if name == EVALUATION:
        raise ConfigError(f"--name {name}: is the worktree of `envace evaluate`; choose another name")


def _check_spelling(name: str) -> None:
    # what both git and a file system take
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise ConfigError(
            f"--name {name!r}: use letters, digits and . _ - (no two dots in a row, not .lock at the end)"
        )


def check_parameters(root: Path, profile: str | None, values: Mapping[str, Any]) -> None:
    """Raises ConfigError where `open_workspace` would refuse these, without making anything."""
    from envace.strict_yaml import parse_plain_yaml

    where = f"profile {profile}" if profile else "params.yaml"
    parse_params(parse_plain_yaml(_parameters(root, root, profile, values)), where)


def ended(root: Path, name: str) -> bool:
    """Whether a run of this name has come to its end: a commit on its branch says so."""
    branch = f"runs/{name}"
    return has_branch(root, branch) and has_trailer(root, branch, _ENDED, name)


def remove_old(root: Path, keep: int = KEEP) -> list[str]:
    """Remove the worktrees of ended runs but the newest `keep`, and those of failed runs likewise. Returns their names.

    No other run may be at work in this project.
    """
    folders = sorted((root / WORKTREES).glob("*/"), key=lambda f: f.stat().st_mtime, reverse=True)
    runs = [folder.name for folder in folders if folder.name != EVALUATION]
    ended_well = {name for name in runs if ended(root, name)}
    old = [name for name in runs if name in ended_well][keep:] + [name for name in runs if name not in ended_well][
        keep:
    ]
    for name in old:
        folder = root / WORKTREES / name
        try:
            git(root, "worktree", "remove", "--force", str(folder))
        except StageError:  # a worktree that git no longer knows, as after the project was moved
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(StageError):
                git(root, "worktree", "prune")
    return old


def _check_out(root: Path, place: Workspace) -> None:
    git(root, "worktree", "prune")
    if place.folder.exists() and not ((place.folder / ".git").exists() and place.folder in worktrees(root)):
        shutil.rmtree(place.folder)  # a checkout that was cut short, or made before the project was moved
        git(root, "worktree", "prune")
    if not has_branch(root, place.branch):
        git(root, "worktree", "add", "--quiet", "-b", place.branch, str(place.folder), "HEAD")
        return
    if place.folder.exists():
        git(place.folder, "checkout", "--quiet", "--force", place.branch)
    else:
        git(root, "worktree", "add", "--quiet", str(place.folder), place.branch)
    if ended(root, place.name):
        return
    # it failed before, and its user may have mended the code since: today's code, with the parameters it was given
    said = git(place.folder, "log", "--format=%s", f"{git(root, 'rev-parse', 'HEAD')}..{place.branch}")
    text = git(place.folder, "show", f"{place.branch}:params.yaml")
    git(place.folder, "reset", "--quiet", "--hard", git(root, "rev-parse", "HEAD"))
    # not by comparing files: the branch may have begun at a commit that is no longer part of this one
    if place.name != EVALUATION and _parameters_message(place.name) in said.splitlines():
        write_text(place.folder / "params.yaml", text + "\n")


def _furnish(root: Path, place: Workspace, profile: str | None, values: Mapping[str, Any]) -> None:
    link = place.folder / ".envace"
    if not link.is_symlink():
        link.symlink_to(Path("..") / "..", target_is_directory=True)
    share_cache(place.folder, cache_folder(root))
    if profile or values:
        write_text(place.folder / "params.yaml", _parameters(root, place.folder, profile, values))
    params = load_params(place.folder / "params.yaml")
    commit(place.folder, _parameters_message(place.name), "params.yaml")
    _link_own_files(root, place.folder, params)


def _parameters_message(name: str) -> str:
    return f"Parameters of run {name}"


def _take_away(root: Path, place: Workspace) -> None:
    git(root, "worktree", "remove", "--force", str(place.folder))
    git(root, "branch", "--quiet", "-D", place.branch)


def _parameters(root: Path, folder: Path, profile: str | None, values: Mapping[str, Any]) -> str:
    import yaml

    from envace.strict_yaml import parse_plain_yaml

    text = (folder / "params.yaml").read_text(encoding="utf-8")
    if profile:
        given = profile_text(root, profile)
        over = parse_plain_yaml(given)
        both = merged(parse_plain_yaml(text), over)
        # a whole profile word for word, comments included
        text = given if both == over else yaml.safe_dump(both, sort_keys=False, allow_unicode=True)
    if values:
        text = yaml.safe_dump(fill_in(parse_plain_yaml(text), values), sort_keys=False, allow_unicode=True)
    return text


def _link_own_files(root: Path, folder: Path, params: Params) -> None:
    """Files of the user that params.yaml names by a relative path and that are not in git."""
    fetch, build = params.fetch_data, params.build_base_model
    named = [fetch.train_path, fetch.heldout_path] if fetch.source == "file" else []
    named += [build.path] if build.source == "folder" else []
    for path in filter(None, named):
        if Path(path).expanduser().is_absolute():
            continue
        for match in glob.glob(path, root_dir=root):
            target = folder / match
            if not target.resolve().is_relative_to(folder):
                raise ConfigError(f"{path}: lies outside the project; a run of its own needs its absolute path")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to((root / match).resolve())
