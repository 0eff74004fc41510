"""A client of Gestalt, the erasure-coded distributed in-memory key-value store.

>>> with gestalt.connect("gestalt://127.0.0.1:11311/default") as client:
...     client.set("greeting", "hello")
...     client.get("greeting")

Every method of a client has three forms. ``client.get(key)`` waits and gives the result. ``client.iget(key)`` returns at once with a
:class:`Request`, which is looked after by ``done()``, ``wait()``, ``result()`` and ``cancel()``. ``await client.iget(key)`` is the second one in asyncio.
"""

from ._batch import Batch
from ._client import Client, Item, Places, Request, Span, Stat, connect, wait_all, wait_any
from ._errors import (
    BadKey,
    BufferChanged,
    Cancelled,
    Changed,
    Closed,
    Corrupt,
    Expired,
    GestaltError,
    NoNamespace,
    NotANumber,
    OutOfMemory,
    ShortBuffer,
    TimedOut,
    TooLarge,
    Unavailable,
    Unknown,
    Unreachable,
)

__all__ = [
    "BadKey",
    "Batch",
    "BufferChanged",
    "Cancelled",
    "Changed",
    "Client",
    "Closed",
    "Corrupt",
    "Expired",
    "GestaltError",
    "Item",
    "NoNamespace",
    "NotANumber",
    "OutOfMemory",
    "Places",
    "Request",
    "ShortBuffer",
    "Span",
    "Stat",
    "TimedOut",
    "TooLarge",
    "Unavailable",
    "Unknown",
    "Unreachable",
    "connect",
    "wait_all",
    "wait_any",
]
