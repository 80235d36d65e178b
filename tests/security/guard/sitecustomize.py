"""Loaded by every Python whose path names this folder: nothing but this machine can be reached, and tries are noted.

ENVACE_GUARD_LOG names the file that gets a line for every name that is looked up and every address that is refused.
"""

from __future__ import annotations

import os
import socket
from typing import Any

_LOG = os.environ["ENVACE_GUARD_LOG"]
_look_up, _connect, _connect_ex, _send_to = (
    socket.getaddrinfo,
    socket.socket.connect,
    socket.socket.connect_ex,
    socket.socket.sendto,
)
_by_name = {name: getattr(socket, name) for name in ("gethostbyname", "gethostbyname_ex")}
_OWN = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "", socket.gethostname(), socket.gethostname().split(".")[0]}


def _note(what: str, name: str) -> None:
    with open(_LOG, "a", encoding="utf-8") as log:
        log.write(f"{what} {name}\n")


def _asked(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    _note("look-up", name)
    if name not in _OWN:
        raise socket.gaierror(socket.EAI_NONAME, f"the network is blocked: {name}")


def _checked(address: Any) -> None:
    if isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1")) and address[0] not in _OWN:
        _note("address", str(address[0]))
        raise OSError(f"the network is blocked: {address[0]}")


def _getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
    _asked(host)
    return _look_up(host, *rest, **named)


def _named(function: Any) -> Any:
    def asked(host: str) -> Any:
        _asked(host)
        return function(host)

    return asked


def _connected(self: socket.socket, address: Any) -> None:
    _checked(address)
    _connect(self, address)


def _connected_ex(self: socket.socket, address: Any) -> int:
    _checked(address)
    return _connect_ex(self, address)


def _sent(self: socket.socket, data: Any, *rest: Any) -> int:
    _checked(rest[-1])
    return _send_to(self, data, *rest)


socket.getaddrinfo = _getaddrinfo
for _name, _function in _by_name.items():
    setattr(socket, _name, _named(_function))
socket.socket.connect = _connected  # type: ignore[method-assign]
socket.socket.connect_ex = _connected_ex  # type: ignore[method-assign]
socket.socket.sendto = _sent  # type: ignore[method-assign]
