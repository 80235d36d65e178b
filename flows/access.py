"""Who may use Prefect's API of this project: a secret made once in .envace, and no page of another origin."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

SECRET = Path(".envace/secrets/prefect")
"""Holds `name:password`, readable by its owner alone. What Prefect's page asks for on the first visit."""

_SERVER = "PREFECT_SERVER_API_AUTH_STRING"
_CLIENT = "PREFECT_API_AUTH_STRING"


def use_access(root: Path, own_address: str) -> None:
    """Demand the secret of a server at `own_address` started from this process, and send it with every request.

    It travels in the environment only: neither a command line nor a settings file holds it. A value the user has set
    for the server stays. Never call this for a server that is not the project's own: the secret would be sent to it.
    """
    secret = auth_string(root)
    os.environ.setdefault(_SERVER, secret)
    os.environ[_CLIENT] = os.environ[_SERVER]
    os.environ.setdefault("PREFECT_SERVER_CSRF_PROTECTION_ENABLED", "true")
    # the default is every origin
    os.environ.setdefault("PREFECT_SERVER_CORS_ALLOWED_ORIGINS", own_address)


def auth_string(root: Path) -> str:
    """The secret, made on first use. Two first users at once get the same one."""
    path = root / SECRET
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return _read(path)
    except FileNotFoundError:
        part = path.with_name(f".{path.name}.part-{os.getpid()}-{secrets.token_hex(4)}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"envace:{secrets.token_urlsafe(32)}\n")
        try:
            os.link(part, path)  # fails where another process was first
        except FileExistsError:
            pass
        finally:
            part.unlink()
        return _read(path)


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()
