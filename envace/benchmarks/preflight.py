"""Before a run: does the endpoint answer, and take a request with a tool? No minutes are spent on a dead one."""

from __future__ import annotations

import asyncio
from typing import Any

from envace.benchmarks.protocol import ModelEndpoint
from envace.endpoints.client import ChatClient
from envace.errors import BenchmarkError, EndpointError

_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The present weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city."}},
            "required": ["city"],
        },
    },
}
_MESSAGES = [{"role": "user", "content": "What is the weather in Paris? Use the tool."}]


def preflight(role: str, endpoint: ModelEndpoint) -> dict[str, Any]:
    """Ask once with a tool. Returns what came, for the provenance: a call, or why that is worth knowing.

    A weak policy may well answer in words, which is recorded and no error. Raises BenchmarkError where nothing that is
    a chat completion comes back.
    """
    try:
        return asyncio.run(_ask(endpoint))
    except EndpointError as error:
        raise BenchmarkError(
            f"pre-flight of the {role} endpoint failed, nothing was run: {error}\n"
            f"is the server up, and is its model called {endpoint.model}?"
        ) from None


async def _ask(endpoint: ModelEndpoint) -> dict[str, Any]:
    client = ChatClient(endpoint)
    try:
        reply = await client.chat(
            _MESSAGES,
            tools=[_TOOL],
            max_tokens=min(endpoint.sampling.max_tokens, 512),
            temperature=endpoint.sampling.temperature,
            top_p=endpoint.sampling.top_p,
        )
    finally:
        await client.close()
    called = [call["function"]["name"] for call in reply.tool_calls]
    return {"answered": True, "called": called, "finish_reason": reply.finish_reason}
