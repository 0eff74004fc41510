"""Waiting that an interrupt can end."""

import time
from typing import Callable, Optional

from . import _library as lib
from ._errors import check

#: How long the library waits at a time, in seconds: in between the interpreter sees to signals, such as an interrupt.
_NAP = 0.2


def nap(wait: Callable[[int], int], timeout: Optional[float]) -> bool:
    """Whether what is waited for has come in time."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _NAP if end is None else max(0.0, min(_NAP, end - time.monotonic()))
        code = wait(int(left * 1000))
        if code != lib.PENDING:
            check(code)
            return True
        if end is not None and time.monotonic() >= end:
            return False
