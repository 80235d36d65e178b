"""Ray without the process of its dashboard, which asks the clouds' metadata servers where it runs.

With `include_dashboard=False` Ray 2.60 starts that process all the same, for its usage reports alone, and it looks up
169.254.169.254 and metadata.google.internal before it looks whether such reports are wanted
(`ray/dashboard/modules/usage_stats/usage_stats_head.py`). Ray goes on without it where it could not be started.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_dashboard() -> Iterator[None]:
    """For the time in which this process starts Ray."""
    from ray._private import services

    start = services.start_api_server  # AttributeError: another version than the pinned one
    services.start_api_server = lambda *args, **kwargs: (None, None)
    try:
        yield
    finally:
        services.start_api_server = start
