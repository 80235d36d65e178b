"""How every pipeline stage runs as a process: quiet, alone, dying with its parent, failing with one clear message."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import NoReturn

from envace.config import Params, load_params
from envace.errors import EnvaceError
from envace.locks import held
from envace.missing import missing_package
from envace.processes import Terminated, adopt_orphans, die_with_parent, end_descendants, unwind_on_signals
from envace.quiet import be_quiet

EXIT_ERROR = 2
_UNWIND_S = 15.0  # less than what flows allow before they kill the group
_GRACE_S = 2.0  # for helpers that are still there when the stage has ended
_TRAINERS = ("train_policy",)  # stages of which a machine runs one at a time


def stage_main(name: str, run: Callable[[Params], None]) -> NoReturn:
    """Run one stage with params.yaml of the working directory and exit.

    Exit codes: 0 done, 1 a bug (with its traceback), 2 a deliberate error (one message), 130 SIGINT, 143 SIGTERM.
    """
    be_quiet()
    die_with_parent()
    adopt_orphans()
    locks = ExitStack()
    # registered first, so they run last, after the shutdown hooks of whatever the stage imports:
    # first every process goes, then the locks that guard against them
    atexit.register(locks.close)
    atexit.register(end_descendants, _GRACE_S)
    _exit_if_parent_is_gone()
    code = 0
    try:
        unwind_on_signals(_UNWIND_S)
        locks.enter_context(held(name, what=f"stage {name}"))
        if name in _TRAINERS:
            locks.enter_context(held("gpu", what="this project's trainer"))
        run(load_params())
    except EnvaceError as error:
        print(f"{name}: {error}", file=sys.stderr)
        code = EXIT_ERROR
    except ModuleNotFoundError as error:
        told = missing_package(error)
        if told is None:
            raise
        print(f"{name}: {told}", file=sys.stderr)
        code = EXIT_ERROR
    except Terminated:
        code = 128 + signal.SIGTERM
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as request:
        # Ray puts its own SIGTERM handler in place of ours; it exits with the bare signal number
        code = 128 + signal.SIGTERM if request.code == signal.SIGTERM else request.code
    sys.stdout.flush()
    sys.exit(code)


def _exit_if_parent_is_gone() -> None:
    """The parent may have ended before the death signal was set; bin/step passes on who it was."""
    expected = os.environ.pop("ENVACE_PARENT_PID", "")
    if expected.isdigit() and int(expected) != os.getppid():
        sys.exit(128 + signal.SIGTERM)
