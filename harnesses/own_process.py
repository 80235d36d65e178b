"""A run in a process of its own, forked from a driver that has imported the harness and done nothing with it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from envace.errors import EnvaceError
from envace.processes import child_setup


def in_own_process(name: str, folder: Path, work: Callable[[], int]) -> int:
    """Do `work` with `folder` as working directory. Returns what it returns, 1 where it fails: that is printed.

    The process dies with the driver, which dies with whoever started it.
    """
    sys.stdout.flush()
    setup = child_setup(os.getpid())
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        setup()
        os.chdir(folder)
        code = work()
    except EnvaceError as error:
        print(f"{name}: {error}", flush=True)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
