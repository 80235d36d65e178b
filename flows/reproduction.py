"""Making a registered version again: its commit in a git worktree, its raw data, and every stage run anew.

The worktree has a DVC cache and a model registry of its own, so that nothing can be taken from the run it is compared
with, and nothing of the project changes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from envace.config import Params, parse_params
from envace.errors import DataError, StageError, TrackingError
from envace.files import write_text
from envace.locks import LOCKS
from envace.strict_yaml import parse_plain_yaml
from envace.tracking.code_state import code_at, has_commit
from envace.tracking.dvc_content import cached_listing, cached_object, file_md5
from envace.tracking.lineage import Lineage
from envace.tracking.provenance import LOCK, PARAMS
from envace.tracking.verified_code import code_deps, content_at
from flows.dvc import StageOutcome, run_stage, share_cache
from flows.git import git

FOLDER = Path(".envace/reproductions")
LAST = "register_model"
"""The stage after those that the version's dvc.lock has; its decision is compared as well."""


def refuse_early(lineage: Lineage, root: Path) -> None:
    """Raises TrackingError, with what to do, where the version cannot be made again from what was recorded."""
    where, commit = lineage.where, lineage.git_commit
    if commit is None:
        raise TrackingError(f"{where}: registered outside git, so no commit holds the code that made it")
    if not lineage.lock or PARAMS not in lineage.texts:
        raise TrackingError(f"{where}: registered without dvc.lock and parameters, so there is nothing to compare with")
    if changed := lineage.record.get("uncommitted_code"):
        raise TrackingError(
            f"{where}: registered over changes that were not committed ({_few(changed)}), so commit {commit[:12]} does "
            "not hold the code that made it; commit first, then run, and that version can be reproduced"
        )
    if not has_commit(root, commit):
        raise TrackingError(f"{where}: commit {commit} is not in this repository; fetch the branch that holds it")
    files = code_at(root, commit)
    if other := [path for path, content in code_deps(lineage.lock).items() if content_at(files, path) != content]:
        raise TrackingError(
            f"{where}: its stages ran with other code than commit {commit[:12]} holds ({_few(other)}); "
            "commit that code and run again, then that version can be reproduced"
        )


def taken_as_given(lineage: Lineage) -> list[str]:
    """Stages that only bring in what lies outside the project: their outputs are taken from DVC's cache."""
    params = params_of(lineage)
    given = [] if params.fetch_data.source == "sample" else ["fetch_data"]
    return given + ([] if params.build_base_model.source == "tiny" else ["build_base_model"])


def params_of(lineage: Lineage) -> Params:
    """The recorded parameters. Raises ConfigError where this version of the code has other keys."""
    return parse_params(parse_plain_yaml(lineage.texts[PARAMS]), f"{PARAMS} of {lineage.where}")


def make_worktree(lineage: Lineage, root: Path, cache: Path) -> Path:
    """Check the commit out with the recorded parameters and the raw data. Raises DataError where that is gone."""
    folder = (root / FOLDER / f"{lineage.name}-{lineage.version}").resolve()
    remove_worktree(root, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(root, "worktree", "add", "--quiet", "--detach", str(folder), str(lineage.git_commit))
    write_text(folder / PARAMS, lineage.texts[PARAMS])
    # DVC keeps its own record of the stages that are not run again, and so does not ask for their inputs
    write_text(folder / LOCK, lineage.texts[LOCK])
    share_cache(folder, folder / ".dvc" / "cache")
    _share_trainer_lock(root, folder)
    given = taken_as_given(lineage)
    for stage in lineage.lock:
        for path, content in stage.outs.items() if stage.name in given else ():
            _from_cache(content, cache, folder / path)
    return folder


def run_stages(
    lineage: Lineage, folder: Path, begin: Callable[[str], None], log: Callable[[str], None]
) -> Iterator[StageOutcome]:
    """Run every stage anew, without DVC's run cache. `begin` is told each name. Raises StageError where one fails."""
    given = taken_as_given(lineage)
    for name in [stage.name for stage in lineage.lock if stage.name not in given] + [LAST]:
        begin(name)
        outcome = run_stage(name, force=True, log=log, root=folder, run_cache=False)
        if not outcome.ran:
            raise StageError(f"stage {name}: DVC did not run it although it was told to; nothing can be said")
        yield outcome


def remove_worktree(root: Path, folder: Path) -> None:
    """Take a reproduction away, also one that was cut short."""
    if folder.exists():
        shutil.rmtree(folder)
    git(root, "worktree", "prune")


def _from_cache(content: str, cache: Path, target: Path) -> None:
    """Put a cached file or folder in its place, each file checked by its hash."""
    try:
        files = cached_listing(cache, content)
    except TrackingError as error:
        raise DataError(
            f"{target.name}: the data that the version started from is gone ({error}); try `dvc pull`"
        ) from None
    for name, md5 in files.items():
        source, place = cached_object(cache, md5), target / name if name else target
        if not source.is_file():
            raise DataError(f"{target.name}/{name}: gone from DVC's cache ({source}); try `dvc pull`")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        if file_md5(place) != md5:
            raise DataError(f"{source}: DVC's cache is damaged; the data that the version started from is gone")


def _share_trainer_lock(root: Path, folder: Path) -> None:
    """A machine runs one training at a time: the worktree's trainer takes the same lock as the project's."""
    (root / LOCKS).mkdir(parents=True, exist_ok=True)
    shared = (root / LOCKS).resolve() / "gpu.lock"
    shared.touch()
    (folder / LOCKS).mkdir(parents=True, exist_ok=True)
    os.symlink(shared, folder / LOCKS / "gpu.lock")


def _few(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
