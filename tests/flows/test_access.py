"""Who may use Prefect's API: nobody without the secret, no page of another origin; and the secret stays where it is."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from flows.access import SECRET, auth_string
from flows.server import answers, page_address

CODE = """
import os, sys
from pathlib import Path
from flows.server import start_server, wait_for_server
server = start_server(Path())
wait_for_server(server)
print(os.environ["PREFECT_API_URL"], flush=True)
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    print(len(client.read_flows()), flush=True)
sys.stdin.read()
"""


def test_the_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: auth_string(tmp_path), range(16)))
    assert len(made) == 1 and len(made.pop()) > 40
    assert stat.S_IMODE((tmp_path / SECRET).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / SECRET).parent.iterdir()] == [SECRET.name]


def test_another_servers_address_never_gets_the_secret(tmp_path: Path) -> None:
    code = (
        "import os\nfrom pathlib import Path\nfrom flows.server import use_running_server\n"
        "assert use_running_server(Path())\nprint('PREFECT_API_AUTH_STRING' in os.environ)"
    )
    environment = {**os.environ, "PREFECT_API_URL": "http://192.0.2.1:4200/api"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_without_a_page_that_is_up_there_is_no_address(tmp_path: Path) -> None:
    assert page_address(tmp_path) is None


def status(url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> tuple[int, str | None]:
    """Status and allowed origin of a GET, or of a POST where there is a body."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers.get("access-control-allow-origin")
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("access-control-allow-origin")


def test_the_server_of_a_run_takes_nothing_from_strangers(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert process.stdout.readline().strip() == "0", "the run itself is let in"
    assert address.startswith("http://127.0.0.1:") and answers(f"{address}/health")
    secret = (tmp_path / SECRET).read_text(encoding="ascii").strip()
    basic = {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}
    wrong = {"Authorization": "Basic " + base64.b64encode(b"envace:guess").decode()}
    asked = f"{address}/admin/version"
    assert status(asked)[0] == status(asked, wrong)[0] == 401
    assert status(asked, basic)[0] == 200
    # what changes something also needs the token that only a page of the server's own gets
    assert status(f"{address}/flows/filter", basic, b"{}")[0] == 403
    own = address.removesuffix("/api")
    assert status(asked, {"Origin": own, **basic})[1] == own
    assert status(asked, {"Origin": "http://elsewhere.example", **basic})[1] is None
    below = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert len(below) > 1
    assert not any(secret in " ".join(p.cmdline()) for p in below)
    listening = [c.laddr.ip for p in below for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert listening and set(listening) == {"127.0.0.1"}
    process.communicate(timeout=60)
    assert not psutil.wait_procs(below, timeout=20)[1]
    password = secret.partition(":")[2].encode()
    holding = [f for f in (tmp_path / ".envace").rglob("*") if f.is_file() and password in f.read_bytes()]
    assert holding == [tmp_path / SECRET]


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"):
        monkeypatch.delenv(name, raising=False)
