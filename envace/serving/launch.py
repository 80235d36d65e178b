"""Starts the server that was asked for: vLLM in place of this process, or the thin one in it."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from envace.errors import EngineError
from envace.serving.settings import ServeSettings
from envace.serving.vllm_command import vllm_command

Backend = Literal["auto", "vllm", "cpu"]
_LONGEST_BY_DEFAULT = 8192
_SHUTDOWN_S = 5


def serve_policy(settings: ServeSettings, backend: Backend, say: Callable[[str], None]) -> None:
    """Serve until interrupted. `say` takes the lines that the user should see.

    Raises EngineError where the model, the backend or the address cannot be used.
    """
    if not (settings.model / "config.json").is_file():
        raise EngineError(f"{settings.model}: no config.json, so this is not a Hugging Face model folder")
    if not _is_loopback(settings.host):
        say(f"warning: {settings.host} may be reached from other machines, and whoever reaches it may use the model")
    has_vllm = importlib.util.find_spec("vllm") is not None
    if backend == "vllm" and not has_vllm:
        raise EngineError("vLLM is not installed here; install the project with its gpu extra, or use --backend cpu")
    if backend == "vllm" or (backend == "auto" and has_vllm):
        _become(vllm_command(settings))
    _serve_on_cpu(settings, say)


def _become(command: list[str]) -> None:
    """Replace this process by a program, looked for beside this interpreter first."""
    beside = Path(sys.executable).parent / command[0]
    program = str(beside) if beside.is_file() else shutil.which(command[0])
    if program is None:
        raise EngineError(f"the program {command[0]!r} is neither beside {sys.executable} nor on PATH")
    os.execv(program, command)


def _serve_on_cpu(settings: ServeSettings, say: Callable[[str], None]) -> None:
    listening = _listen(settings.host, settings.port)
    # with two threads on two shared cores small models were many times slower; for large ones set the variable
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import uvicorn

    from envace.engines.load import load_policy
    from envace.serving.app import build_app
    from envace.serving.service import ChatService

    length = _max_length(settings)
    policy = load_policy(settings.model, max_slots=settings.max_concurrency, max_length=length)
    service = ChatService(policy.engine, policy.layout, name=settings.name, max_length=length)
    config = uvicorn.Config(
        build_app(service, settings.max_concurrency),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
        server_header=False,
    )
    port = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"serving {settings.name} on the CPU at http://{host}:{port}/v1 (Ctrl-C stops it)")
    with suppress(KeyboardInterrupt):  # raised again by uvicorn once all is closed
        uvicorn.Server(config).run(sockets=[listening])
    say("stopped")


def _max_length(settings: ServeSettings) -> int:
    """The asked length, or what the model allows up to a bound: the cache is as long as the longest answer may be."""
    try:
        allowed = int(
            json.loads((settings.model / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise EngineError(f"{settings.model}/config.json: max_position_embeddings cannot be read") from None
    if settings.max_length is not None and settings.max_length > allowed:
        raise EngineError(f"--max-length {settings.max_length} is more than the model's {allowed} positions")
    return settings.max_length or min(allowed, _LONGEST_BY_DEFAULT)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, before the model is loaded: a port in use is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise EngineError(f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
