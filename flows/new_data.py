"""Notices that the raw file named in params.yaml has another content, and tells Prefect, once for each content."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from envace.config import load_params
from envace.errors import ConfigError, DataError
from envace.files import canonical_json, read_json, write_json
from envace.freshness import source_files, source_sha256
from flows.git import uncommitted

EVENT = "envace.data.changed"
_SEEN = Path(".envace/prefect/announced.json")


def announce(root: Path = Path()) -> str | None:
    """Send the event if the content was not announced before. Returns its SHA-256, None where nothing is new.

    Files whose sizes and times are as they were are not read again. The sample and a pinned revision never change.
    Raises ConfigError, also where params.yaml has edits that are not committed, as the run that follows would not have
    them; DataError where a named file is missing.
    """
    params = load_params(root / "params.yaml")
    if params.fetch_data.source != "file":
        return None
    files = source_files(params, root)
    if not files:
        raise DataError(f"{params.fetch_data.train_path}: no such file (fetch_data.train_path in params.yaml)")
    seen = read_json(root / _SEEN) if (root / _SEEN).is_file() else {}
    marks = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    if seen.get("marks") == marks:
        return None
    if (root / ".git").exists() and uncommitted(root, "params.yaml"):
        raise ConfigError(
            "params.yaml has edits that are not committed, and a run on new data starts from the last commit; no "
            "data is announced until you commit it: `git commit params.yaml`"
        )
    content = source_sha256(params, root)
    is_new = seen.get("sha256") != content
    if is_new:
        asyncio.run(_send(content, str(params.fetch_data.train_path)))
    write_json(root / _SEEN, {"sha256": content, "marks": marks})
    return content if is_new else None


async def _send(content: str, name: str) -> None:
    from prefect.events import Event
    from prefect.events.clients import get_events_client

    about: dict[str, str] = {"prefect.resource.id": f"envace.data.{content[:16]}", "prefect.resource.name": name}
    payload: dict[str, Any] = {"sha256": content}
    # an id that follows from the content: Prefect takes each event once
    identity = uuid5(NAMESPACE_URL, f"{EVENT}:{canonical_json(payload)}")
    event = Event.model_validate({"event": EVENT, "resource": about, "payload": payload, "id": identity})
    async with get_events_client(checkpoint_every=1) as client:
        await client.emit(event)
