"""`envace reproduce NAME/VERSION`: make a registered version again, and say whether every byte is the same."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.data_commands import told_errors
from flows.lineage_command import Version, cache_of, parts_of

_INDENT = " " * 6


def reproduce(
    version: Version,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the worktree there also where all is identical.")] = False,
) -> None:
    """Make a version again from its commit, parameters and raw data alone, and compare all outputs.

    Exit code 0 where all is identical, 1 where a stage fails or a file differs, 2 where it cannot be tried.
    """
    with told_errors():
        from envace.errors import StageError, TrackingError
        from envace.locks import LOCKS, held
        from envace.processes import adopt_orphans
        from envace.tracking.lineage import read_lineage
        from flows.progress import say
        from flows.reproduced_outputs import Difference, compare
        from flows.reproduction import make_worktree, refuse_early, remove_worktree, run_stages, taken_as_given

        adopt_orphans()
        root = Path()
        found = read_lineage(*parts_of(version), root)
        refuse_early(found, root)
        cache = cache_of(root)
        if cache is None:
            raise TrackingError(f"{root.resolve()}: no DVC project; run from the project's root")
        with held(
            f"reproduce-{found.name}-{found.version}", what=f"the reproduction of {found.where}", folder=root / LOCKS
        ):
            folder = make_worktree(found, root, cache)
            say(f"reproducing {found.where} from commit {str(found.git_commit)[:12]} in {folder}")
            for name in taken_as_given(found):
                say(f"{name}: what it brought in is taken from DVC's cache")
            count, differences = 0, list[Difference]()
            try:
                for outcome in run_stages(found, folder, say, lambda line: say(_INDENT + line)):
                    made = compare(found, outcome.stage, folder, cache)
                    count, differences = count + made.files, differences + made.differences
                    words = f"{len(made.differences)} of {made.files} files differ" if made.differences else "identical"
                    say(f"{_INDENT}{words} ({outcome.seconds:.0f} s)")
            except StageError as error:
                say(f"\n{found.where}: not reproduced: {error}\nwhat it left is in {folder}")
                raise typer.Exit(1) from None
            if not differences and not keep:
                remove_worktree(root, folder)
    if not differences:
        say(f"\nidentical: all {count} files of {found.where} came out as recorded")
        return
    say(f"\n{len(differences)} of {count} files of {found.where} differ; look at the first")
    for difference in differences:
        say(f"  {difference.path}: {difference.detail}")
    say(f"both can be compared: {shlex.quote(str(folder))} has what was made now")
    raise typer.Exit(1)
