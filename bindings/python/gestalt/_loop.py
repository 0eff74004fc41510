"""A completion queue in an asyncio loop."""

import asyncio
from ctypes import byref, c_size_t, c_uint64
from typing import Any, Dict

from . import _library as lib
from ._errors import check

#: Requests that are taken out of a queue at a time.
_BATCH = 256


class LoopQueue:
    """What a client's requests are told by that belong to one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        handle = c_uint64()
        check(lib.queue_open(byref(handle)))
        self.handle = handle.value
        self._loop = loop
        self._waiting: Dict[int, "asyncio.Future[None]"] = {}
        #: How many requests of a batch are not over, by its tag.
        self._left: Dict[int, int] = {}
        self._last = 0
        self._events = (lib.Event * _BATCH)()
        self._count = c_size_t()
        self._fd = lib.queue_fd(self.handle)
        loop.add_reader(self._fd, self._ready)

    def future(self, tag: int) -> "asyncio.Future[None]":
        """Done when the request with this tag is over."""
        future = self._waiting[tag] = self._loop.create_future()
        return future

    def future_of_many(self, tag: int, count: int) -> "asyncio.Future[None]":
        """Done when as many requests with this tag are over."""
        self._left[tag] = count
        return self.future(tag)

    def next_tag(self) -> int:
        self._last += 1
        return self._last

    def forget(self, tag: int) -> None:
        self._waiting.pop(tag, None)
        self._left.pop(tag, None)

    def _ready(self) -> None:
        # Whatever is left keeps the descriptor readable: others of the loop have their turn in between.
        lib.queue_poll(self.handle, self._events, _BATCH, 0, byref(self._count))
        left = self._left
        for index in range(self._count.value):
            tag = self._events[index].tag
            if tag in left:
                left[tag] -= 1
                if left[tag] > 0:
                    continue
                del left[tag]
            future = self._waiting.pop(tag, None)
            if future is not None and not future.done():
                future.set_result(None)

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
            self._loop.call_soon_threadsafe(self._finish, list(self._waiting.values()))
        self._waiting.clear()
        lib.queue_close(self.handle)

    @staticmethod
    def _finish(futures: Any) -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)
