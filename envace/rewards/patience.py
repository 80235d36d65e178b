"""How long one verdict may take in all: a fixed time, without the wait for a free slot while others are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """So many questions at once, and when the endpoint last answered one. Usable in one event loop after another."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(size)
        self.last_answer = float("-inf")
        """`time.monotonic()` of the last good answer."""

    def answered(self) -> None:
        """The endpoint has just given a good answer."""
        self.last_answer = time.monotonic()

    @property
    def free(self) -> asyncio.Semaphore:
        """The slots of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._free = loop, asyncio.Semaphore(self._size)
        return self._free


class Patience:
    """The time left for one verdict, which may take several questions one after another.

    It runs while a question is being asked. It also runs while one waits for a slot, but starts anew with every answer
    that another question gets meanwhile: an endpoint that hangs holds a verdict no longer than `seconds` in all, and a
    busy one fails no verdict that is merely in the queue.
    """

    def __init__(self, slots: Slots, seconds: float) -> None:
        self._slots, self.left = slots, seconds

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds a slot. Raises TimeoutError when the verdict's time is up, while waiting or inside."""
        began, free = time.monotonic(), self._slots.free
        await self._take(free, began)
        deadline = self._deadline(began)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                yield
        finally:
            free.release()
            self.left = max(0.0, deadline - time.monotonic())

    async def _take(self, free: asyncio.Semaphore, began: float) -> None:
        while True:
            wait = self._deadline(began) - time.monotonic()
            if wait <= 0:
                self.left = 0.0
                raise TimeoutError
            try:
                async with asyncio.timeout(wait):
                    await free.acquire()
                    return
            except TimeoutError:
                continue  # another question may have been answered meanwhile

    def _deadline(self, began: float) -> float:
        return max(began, self._slots.last_answer) + self.left
