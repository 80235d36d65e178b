"""`envace serve`: a checkpoint behind an OpenAI-compatible address, until Ctrl-C."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ServeBackend(StrEnum):
    """What answers."""

    auto = "auto"
    vllm = "vllm"
    cpu = "cpu"


def serve(
    model: Annotated[Path, typer.Option(help="A Hugging Face folder, for example models/policy.")],
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond loopback anyone may use the model.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Answers generated side by side; others wait.")] = 16,
    max_length: Annotated[int | None, typer.Option(min=2, help="Longest prompt plus answer, in tokens.")] = None,
    name: Annotated[str | None, typer.Option(help="Name that clients ask for; the folder's name if left out.")] = None,
    backend: Annotated[ServeBackend, typer.Option(help="auto: vLLM where it is installed.")] = ServeBackend.auto,
) -> None:
    """Serve a checkpoint at an OpenAI-compatible address: vLLM where installed, else a thin server on the CPU."""
    from envace.quiet import be_quiet
    from envace.serving.launch import serve_policy
    from envace.serving.settings import ServeSettings

    be_quiet()
    settings = ServeSettings(model, name or model.resolve().name, host, port, max_concurrency, max_length)
    serve_policy(settings, backend.value, lambda text: print(text, file=sys.stderr, flush=True))
