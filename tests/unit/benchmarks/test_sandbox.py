"""Children are bounded in time, processor time and memory, cut off from the network, and start from the same state."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harnesses.bfcl.sandbox import Bounds, Channel, ChildFailedError, Zygote, network_can_be_dropped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of the BFCL driver is for Linux")
QUICK = Bounds(silent_s=2.0, cpu_s=5, memory_mb=256)
STATE: list[int] = []


def work(task: dict[str, Any], channel: Channel) -> Any:
    """One of the things that a policy's call might do."""
    kind = task["kind"]
    if kind == "ask":
        return [channel.ask({"n": n}) for n in range(3)]
    if kind == "hang":
        time.sleep(3600)
    if kind == "spin":
        while True:
            pass
    if kind == "memory":
        return len(bytearray(2 << 30))
    if kind == "state":
        STATE.append(1)
        return len(STATE)
    if kind == "network":
        socket.create_connection(("127.0.0.1", task["port"]), timeout=1).close()
        return "reached"
    if kind == "environment":
        return dict(os.environ)
    if kind == "garbage":
        os.write(channel._connection.fileno(), b"\x00\x00\x00\x04nope")
        time.sleep(3600)
    if kind == "exit":
        os._exit(0)
    raise ValueError("told")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote(work, without_network=network_can_be_dropped() is None)
    yield made
    made.close()


def nothing(question: Any) -> Any:
    return None


def test_questions_are_answered(zygote: Zygote) -> None:
    assert zygote.run({"kind": "ask"}, QUICK, lambda asked: asked["n"] * 2) == [0, 2, 4]


def test_every_child_starts_from_the_same_state(zygote: Zygote) -> None:
    assert [zygote.run({"kind": "state"}, QUICK, nothing) for _ in range(3)] == [1, 1, 1]
    assert STATE == []


@pytest.mark.parametrize(
    ("kind", "says"),
    [("hang", "without a word"), ("memory", "MemoryError"), ("garbage", "died"), ("exit", "died"), ("else", "told")],
)
def test_what_a_child_cannot_do(zygote: Zygote, kind: str, says: str) -> None:
    began = time.monotonic()
    with pytest.raises(ChildFailedError, match=says):
        zygote.run({"kind": kind}, Bounds(1.0, 5, 256), nothing)
    assert time.monotonic() - began < 60
    assert zygote.run({"kind": "state"}, QUICK, nothing) == 1  # the next one is not affected


def test_processor_time_is_bounded(zygote: Zygote) -> None:
    with pytest.raises(ChildFailedError, match="processor time"):
        zygote.run({"kind": "spin"}, Bounds(600.0, 1, 256), nothing)


def test_an_error_of_the_answer_ends_the_child_too(zygote: Zygote) -> None:
    def refuse(question: Any) -> Any:
        raise LookupError("stop")

    with pytest.raises(LookupError):
        zygote.run({"kind": "ask"}, QUICK, refuse)
    assert zygote.run({"kind": "state"}, QUICK, nothing) == 1


def test_no_secret_and_no_network(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert zygote.run({"kind": "environment"}, QUICK, nothing) == {}
    if reason := network_can_be_dropped():
        pytest.skip(f"network namespaces: {reason}")
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ChildFailedError, match="unreachable"):
        zygote.run({"kind": "network", "port": server.getsockname()[1]}, QUICK, nothing)


def test_a_slow_answer_is_not_the_childs_silence(zygote: Zygote) -> None:
    def slow(question: Any) -> int:
        time.sleep(1.2)
        return 1

    assert zygote.run({"kind": "ask"}, Bounds(1.0, 5, 256), slow) == [1, 1, 1]


def test_several_are_ended_in_any_order() -> None:
    made = [Zygote(work, without_network=False) for _ in range(3)]
    for each in made:
        each.close()
        with pytest.raises(ProcessLookupError):
            os.kill(each.pid, 0)
