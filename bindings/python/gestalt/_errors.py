"""Exceptions, by the codes of the C library."""

from typing import Dict, Type

from . import _library as lib


class GestaltError(Exception):
    """Something was not done, or nobody knows. The classes below are for what programs tell apart; ``name`` has the code of all."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        #: The number of the C library, and its name, such as ``"TimedOut"``.
        self.code = code
        self.name = lib.code_name(code).decode()

    @property
    def changed_nothing(self) -> bool:
        """Whether a write that came to this has surely not been done and may be repeated."""
        return lib.changed_nothing(self.code) == 1


class BadKey(GestaltError, ValueError):
    """A key has 1 to 250 bytes."""


class TooLarge(GestaltError):
    """The value is longer than it may be; nothing was done."""


class NotANumber(GestaltError):
    """The value is no number; nothing was done."""


class NoNamespace(GestaltError):
    """There is no such namespace."""


class ShortBuffer(GestaltError, ValueError):
    """The value is longer than the buffer, which would have to have ``needed`` bytes."""

    needed = 0


class Cancelled(GestaltError):
    """The request was cancelled; a write may or may not have been done."""


class Closed(GestaltError):
    """The client was closed; a write may or may not have been done."""


class Unreachable(GestaltError, ConnectionError):
    """It could not be sent to a node in time, or not all of it; nothing was done."""


class TimedOut(GestaltError, TimeoutError):
    """The deadline has passed; a write may or may not have been done."""


class Unknown(GestaltError):
    """A node or its connection was lost; a write may or may not have been done."""


class Expired(GestaltError):
    """The session of the write ended before its end was known; it may or may not have been done."""


class Corrupt(GestaltError):
    """What is there is damaged. A scan ends so when all keys have come but those that are damaged."""


class Unavailable(GestaltError):
    """No primary could be reached in time; nothing was done."""


class OutOfMemory(GestaltError):
    """The cluster has no room, and nothing may be evicted; nothing was done."""


class Changed(GestaltError):
    """The value was replaced while it was read."""


class BufferChanged(GestaltError):
    """The buffer of a write was changed before the write was over."""


_CLASSES: Dict[str, Type[GestaltError]] = {
    cls.__name__: cls for cls in GestaltError.__subclasses__()
}
_CLASSES["Handle"] = Closed


def error(code: int, sentence: str = "") -> GestaltError:
    name = lib.code_name(code).decode()
    return _CLASSES.get(name, GestaltError)(code, sentence or lib.code_text(code).decode())


def check(code: int) -> int:
    """What a call has returned, unless the call was wrong."""
    if code < 0:
        raise error(code, lib.last_error().decode())
    return code
