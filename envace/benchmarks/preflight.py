"""Before a run: does the endpoint answer, and take a request with a tool? No minutes are spent on a dead one."""

from __future__ import annotations

import asyncio
from typing import Any

from envace.benchmarks.protocol import ModelEndpoint
from envace.endpoints.client import ChatClient
from envace.endpoints.overflow import outgrown
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
    """Ask once with a tool, with the run's own `max_tokens`, so that one that can never fit is told before the run.
    Returns what came, for the provenance: a call, or why that is worth knowing.

    A weak policy may well answer in words, which is recorded and no error. Raises BenchmarkError where nothing that is
    a chat completion comes back.
    """
    try:
        return asyncio.run(_ask(endpoint))
    except EndpointError as error:
        if outgrown(str(error)):
            raise BenchmarkError(
                f"pre-flight of the {role} endpoint, nothing was run: answers of {endpoint.sampling.max_tokens} tokens "
                f"leave no room for a question in the model's context; give a smaller --max-tokens, or serve the model "
                f"with a longer context\n({error})"
            ) from None
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
            max_tokens=endpoint.sampling.max_tokens,
            temperature=endpoint.sampling.temperature,
            top_p=endpoint.sampling.top_p,
        )
    finally:
        await client.close()
    called = [call["function"]["name"] for call in reply.tool_calls]
    return {"answered": True, "called": called, "finish_reason": reply.finish_reason}
