"""The command line of vLLM: the recorded contract, and vLLM's own parser where it is installed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from envace.errors import EngineError
from envace.serving.launch import serve_policy
from envace.serving.settings import ServeSettings
from envace.serving.vllm_command import vllm_command

SETTINGS = ServeSettings(Path("models/policy"), "policy", "127.0.0.1", 8001, 32, 20000)
CONTRACT = (
    "vllm serve models/policy --served-model-name policy --host 127.0.0.1 --port 8001 --enable-auto-tool-choice "
    "--tool-call-parser hermes --reasoning-parser qwen3 --enable-prefix-caching --max-num-seqs 32 "
    "--max-model-len 20000 --allowed-origins []"
)


def test_the_command_is_the_recorded_one() -> None:
    assert " ".join(vllm_command(SETTINGS)) == CONTRACT
    assert "--max-model-len" not in vllm_command(ServeSettings(Path("m"), "m"))


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_parser_of_vllm_takes_it() -> None:
    from vllm.entrypoints.openai.cli_args import make_arg_parser  # type: ignore[import-not-found]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

    parsed: Any = make_arg_parser(FlexibleArgumentParser()).parse_args(vllm_command(SETTINGS)[2:])
    assert parsed.served_model_name == ["policy"] and parsed.max_model_len == 20000
    assert parsed.tool_call_parser == "hermes" and parsed.enable_auto_tool_choice and parsed.allowed_origins == []


def test_vllm_takes_the_place_of_this_process_where_it_is_installed(
    saved_policy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replaced: list[Any] = []
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    def execv(path: str, arguments: list[str]) -> None:
        replaced.append((path, arguments))
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        serve_policy(ServeSettings(saved_policy, "policy"), "auto", print)
    path, arguments = replaced[0]
    assert path == str(program) and arguments == vllm_command(ServeSettings(saved_policy, "policy"))
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="'vllm' is neither beside"):
        serve_policy(ServeSettings(saved_policy, "policy"), "vllm", print)
