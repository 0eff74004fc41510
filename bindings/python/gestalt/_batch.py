"""Requests that are asked together and waited for as one."""

import asyncio
from ctypes import byref, c_uint64
from typing import Any, Callable, List, Optional, TypeVar

from . import _library as lib
from ._awaited import Awaited
from ._errors import check, error
from ._loop import LoopQueue
from ._wait import nap

T = TypeVar("T")


class Batch(Awaited[List[T]]):
    """Many requests that were asked at once. Each ends by itself, at its deadline at the latest."""

    __slots__ = ("_client", "_handles", "_decode", "_lent", "_reads", "_results")

    def __init__(self, client: Any, count: int, decode: Callable[[int, lib.Outcome], T], lent: Any, reads: bool) -> None:
        super().__init__()
        self._client, self._decode, self._lent = client, decode, lent
        #: Whether outcomes have values, which are gone with their requests.
        self._reads = reads
        #: As C has them; 0 = it was not asked, or is released.
        self._handles: Any = (c_uint64 * count)()
        self._results: List[T] = []

    def __len__(self) -> int:
        return len(self._handles)

    def done(self) -> bool:
        """Whether all are over."""
        return self.wait(0)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for all of them, at most for so many seconds: whether they are over."""
        if self._client is None or len(self) == 0:
            return True
        self._client._check_lives()
        return nap(lambda millis: lib.wait_all(self._handles, len(self), millis), timeout)

    def result(self, timeout: Optional[float] = None) -> List[T]:
        """Waits and gives what they have come to, in the order in which they were asked. If some have failed the first of these is raised:
        what the others have come to is not told. ``TimeoutError`` if they are not over in time: then they go on."""
        if not self.wait(timeout):
            raise TimeoutError("the requests are not over")
        return self._take()

    def cancel(self) -> None:
        """Ends now what is not over. A write may or may not have been done."""
        if self._client is not None:
            for handle in self._handles:
                check(lib.cancel(handle))

    def _in_loop(self, loop: asyncio.AbstractEventLoop, queue: LoopQueue) -> None:
        """It is to be told when all have ended."""
        self._queue, self._tag = queue, queue.next_tag()
        self._future = queue.future_of_many(self._tag, len(self))

    def _take(self) -> List[T]:
        if self._client is not None:
            outcome = lib.Outcome()
            place, decode, results = byref(outcome), self._decode, self._results
            take = lib.result if self._reads else lib.finish
            try:
                for handle in self._handles:
                    code = take(handle, place)
                    if code >= 0:
                        results.append(decode(handle, outcome))
                    elif self._error is None:
                        self._error = error(code)
                if not self._reads:
                    self._handles = (c_uint64 * len(self))()
            finally:
                self._release()
        if self._error is not None:
            raise self._error
        return self._results

    def _release(self) -> None:
        """The library lets go of all buffers, then we do."""
        client, self._client = self._client, None
        if client is None:
            return
        if client._lives:
            release = lib.release
            for handle in self._handles:
                if handle != 0:
                    release(handle)
        for lent in self._lent:
            if type(lent) is not bytes:
                lent.back()
        self._lent = ()
        self._leave_queue()
