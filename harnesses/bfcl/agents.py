"""Who answers: the policy behind its endpoint, the gold answers, or nobody. One question in, one reply out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from envace.benchmarks.protocol import ModelEndpoint
from envace.endpoints.client import ChatClient
from harnesses.bfcl.replies import Call, Reply

IDLE_ANSWER = "I cannot help with this."


class Agent(Protocol):
    """Answers a question {id, turn, step, messages, tools}. Raises EndpointError where a model cannot be reached."""

    def reply(self, question: Mapping[str, Any]) -> Reply: ...


class IdleAgent:
    """Does nothing: the floor."""

    def reply(self, question: Mapping[str, Any]) -> Reply:
        """Always the same words."""
        return Reply(IDLE_ANSWER)


class EndpointAgent:
    """The policy at an OpenAI-compatible address. May be asked by many threads at once."""

    def __init__(self, endpoint: ModelEndpoint, seed: int) -> None:
        self._sampling, self._seed = endpoint.sampling, seed
        self._client = ChatClient(endpoint)
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start its thread: not before all forking is done."""
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def reply(self, question: Mapping[str, Any]) -> Reply:
        """Ask once, as patiently as the endpoint's settings say."""
        asked = self._client.chat(
            list(question["messages"]),
            tools=question["tools"] or None,
            max_tokens=self._sampling.max_tokens,
            temperature=self._sampling.temperature,
            top_p=self._sampling.top_p,
            seed=self._seed,
        )
        said = asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        calls = [Call(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in said.tool_calls]
        return Reply(
            said.text or None,
            calls,
            said.finish_reason,
            said.usage.get("prompt_tokens", 0),
            said.usage.get("completion_tokens", 0),
            said.reasoning,
        )

    def close(self) -> None:
        """Close the connections and end the thread."""
        if self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
