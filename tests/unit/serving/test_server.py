"""The real server as a process of its own: answers, refusals, clients that leave, and a clean end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envace.config import EndpointParams
from envace.endpoints.client import ChatClient
from envace.errors import EndpointError, EngineError
from envace.serving.launch import serve_policy
from envace.serving.settings import ServeSettings

ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
START = "import typer; from flows.serve_command import serve; typer.run(serve)"


class Served:
    """A running server and the port it took."""

    def __init__(self, folder: Path, log: Path, root: Path) -> None:
        command = [sys.executable, "-c", START, "--model", str(folder), "--port", "0", "--max-concurrency", "2"]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, cwd=root, stdout=file, stderr=file, start_new_session=True)
        self.log, deadline = log, time.monotonic() + 60
        while not (found := re.search(r"at http://127\.0\.0\.1:(\d+)/v1", log.read_text())):
            assert self.process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        self.url = f"http://127.0.0.1:{found[1]}"

    def client(self) -> ChatClient:
        values: dict[str, Any] = {"base_url": f"{self.url}/v1", "model": "policy", "api_key_env": None}
        patience = {"timeout_s": 30, "retries": 1, "deadline_s": 60, "breaker_failures": 5, "breaker_pause_s": 1}
        hosts = {"allowed_hosts": ["127.0.0.1"], "concurrency": 8}
        return ChatClient(EndpointParams.model_validate(values | patience | hosts))


@pytest.fixture(scope="module")
def served(saved_policy: Path, tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Iterator[Served]:
    """One server for this file. The last test ends it."""
    server = Served(saved_policy, tmp_path_factory.mktemp("serve") / "log", project_root)
    yield server
    if server.process.poll() is None:
        server.process.kill()
        server.process.wait()


def test_it_tells_its_health_and_its_model(served: Served) -> None:
    import httpx

    assert httpx.get(f"{served.url}/health", trust_env=False).json() == {"status": "ok"}
    (model,) = httpx.get(f"{served.url}/v1/models", trust_env=False).json()["data"]
    assert model["id"] == "policy" and model["max_model_len"] == 2048


def test_eight_at_once_get_what_each_gets_alone(served: Served) -> None:
    async def main() -> None:
        client = served.client()

        async def one(seed: int) -> str:
            return (await client.chat(ASK, max_tokens=30, temperature=1.0, seed=seed)).text

        alone = [await one(seed) for seed in range(8)]
        assert await asyncio.gather(*(one(seed) for seed in range(8))) == alone and len(set(alone)) == 8
        with pytest.raises(EndpointError, match=r"404.*policy2"):
            client._params = client._params.model_copy(update={"model": "policy2"})
            await one(0)
        await client.close()

    asyncio.run(main())


def test_a_malformed_request_harms_nobody(served: Served) -> None:
    import httpx

    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as raw:
        raw.sendall(b"\x00\x01 nonsense\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    response = httpx.post(f"{served.url}/v1/chat/completions", json={"model": "policy"}, trust_env=False)
    assert response.status_code == 400 and "messages" in response.json()["error"]["message"]
    test_it_tells_its_health_and_its_model(served)


def test_a_client_that_leaves_frees_its_place(served: Served) -> None:
    import httpx

    body = {"model": "policy", "messages": ASK, "max_tokens": 1900, "temperature": 1.0, "seed": 1}

    async def main() -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            for _ in range(4):  # two run, two wait
                with pytest.raises(httpx.ReadTimeout):
                    await http.post(f"{served.url}/v1/chat/completions", json=body, timeout=0.2)
        client, began = served.client(), time.monotonic()
        await client.chat(ASK, max_tokens=5, temperature=0.0)
        assert time.monotonic() - began < 3
        await client.close()

    asyncio.run(main())


def test_an_interrupt_ends_it_cleanly_even_while_it_answers(served: Served) -> None:
    async def main() -> Any:
        client = served.client()
        call = asyncio.create_task(client.chat(ASK, max_tokens=20, temperature=1.0, seed=3))
        await asyncio.sleep(0.05)
        served.process.send_signal(signal.SIGINT)
        return await asyncio.gather(call, return_exceptions=True)

    asyncio.run(main())
    assert served.process.wait(timeout=20) == 0
    told = served.log.read_text()
    assert told.endswith("stopped\n") and "Traceback" not in told, told
    with pytest.raises(ProcessLookupError):
        os.killpg(served.process.pid, 0)


def refusals(folder: Path) -> list[tuple[ServeSettings, str, str]]:
    return [
        (ServeSettings(folder / "none", "x"), "cpu", "no config.json"),
        (ServeSettings(folder, "x", max_length=4000), "cpu", "2048 positions"),
        (ServeSettings(folder, "x", host="no.such.host.invalid"), "cpu", "cannot listen"),
        (ServeSettings(folder, "x"), "vllm", "vLLM is not installed"),
    ]


@pytest.mark.parametrize("case", range(4))
def test_what_cannot_be_served_is_told_at_once(saved_policy: Path, case: int) -> None:
    settings, backend, told = refusals(saved_policy)[case]
    with pytest.raises(EngineError, match=told):
        serve_policy(settings, backend, print)  # type: ignore[arg-type]


def test_a_port_in_use_is_told_and_other_machines_are_warned_of(
    saved_policy: Path,
) -> None:
    said: list[str] = []
    say: Callable[[str], None] = said.append
    with socket.create_server(("0.0.0.0", 0)) as taken:
        settings = ServeSettings(saved_policy, "x", "0.0.0.0", taken.getsockname()[1])
        with pytest.raises(EngineError, match="choose another --port"):
            serve_policy(settings, "cpu", say)
    assert len(said) == 1 and "other machines" in said[0]
