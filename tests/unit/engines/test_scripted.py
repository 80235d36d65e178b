"""The scripted engine: the n-th text for the n-th request of a session, and a clear end."""

from __future__ import annotations

import asyncio

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.errors import EngineError


def test_every_session_plays_the_script_from_its_beginning(layout: ChatLayout) -> None:
    engine = ScriptedEngine(layout, ["one", "two"])

    async def say(session: str) -> str:
        generation = await engine.generate(GenerationRequest(session, [1], 50, 1.0, 1.0, 0))
        assert len(generation.token_ids) == len(generation.log_probs)
        return layout.text(generation.token_ids)

    async def main() -> None:
        assert [await say("a"), await say("b"), await say("a"), await say("b")] == ["one", "one", "two", "two"]
        with pytest.raises(EngineError, match="run out"):
            await say("a")
        cut = await engine.generate(GenerationRequest("c", [1], 1, 1.0, 1.0, 0))
        assert len(cut.token_ids) == 1 and not layout.finished(cut.token_ids)

    asyncio.run(main())
    assert [r.session for r in engine.requests] == ["a", "b", "a", "b", "a", "c"]
