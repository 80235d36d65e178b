"""The command line of `vllm serve` for a policy of ours (vLLM 0.24; not run here: it needs a GPU)."""

from __future__ import annotations

from envace.serving.settings import ServeSettings


def vllm_command(settings: ServeSettings) -> list[str]:
    """The program and its arguments. Tool calls and reasoning are parted as Qwen3 writes them.

    Web pages of other origins are refused (vLLM's default allows all). A key that clients must send is taken by vLLM
    from the environment variable VLLM_API_KEY, never from the command line.
    """
    length = [] if settings.max_length is None else ["--max-model-len", str(settings.max_length)]
    return [
        "vllm",
        "serve",
        str(settings.model),
        "--served-model-name",
        settings.name,
        "--host",
        settings.host,
        "--port",
        str(settings.port),
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "hermes",
        "--reasoning-parser",
        "qwen3",
        "--enable-prefix-caching",
        "--max-num-seqs",
        str(settings.max_concurrency),
        *length,
        "--allowed-origins",
        "[]",
    ]
