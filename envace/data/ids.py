"""Task ids that are safe in file names and paths, whatever the uuid of a row holds."""

from __future__ import annotations

import re
from typing import Any

from envace.files import sha256_text

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def safe_task_id(uuid: Any) -> str:
    """The uuid itself where it is plain; otherwise an id made of its hash. Empty where the row has none.

    A safe id has no separators, no leading dot and no control characters, so it cannot leave a folder.
    """
    if not isinstance(uuid, str) or not uuid:
        return ""
    return uuid if _SAFE.fullmatch(uuid) else f"id-{sha256_text(uuid)[:32]}"
