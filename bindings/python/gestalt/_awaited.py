"""What requests and batches share: they can be awaited, once or by several."""

import asyncio
from typing import Any, Generator, Generic, Optional, TypeVar

from ._errors import error
from ._loop import LoopQueue

T = TypeVar("T")
_CANCELLED = -13


class Awaited(Generic[T]):
    """Something that was asked, in a loop or not. Who is one says whether it is over (``done``), waits for it (``wait``), takes what it has come
    to (``_take``), and lets go of it (``_release``)."""

    __slots__ = ("_queue", "_tag", "_future", "_error", "__weakref__")

    def __init__(self) -> None:
        #: Where its end is told, if it was asked in a loop.
        self._queue: Optional[LoopQueue] = None
        self._tag = 0
        self._future: Optional["asyncio.Future[None]"] = None
        self._error: Optional[Exception] = None

    def done(self) -> bool:
        raise NotImplementedError

    def wait(self, timeout: Optional[float] = None) -> bool:
        raise NotImplementedError

    def _take(self) -> T:
        raise NotImplementedError

    def _release(self) -> None:
        raise NotImplementedError

    def _leave_queue(self) -> None:
        if self._queue is not None:
            self._queue.forget(self._tag)
            self._queue = None

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done():
            try:
                if self._future is not None:
                    yield from self._future
                else:
                    # It was asked outside of a loop.
                    yield from asyncio.get_running_loop().run_in_executor(None, self.wait)
            except asyncio.CancelledError:
                self._error = error(_CANCELLED)
                self._release()
                raise
        return self._take()

    def __del__(self) -> None:
        self._release()
