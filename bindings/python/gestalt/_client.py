"""Clients and requests."""

import asyncio
import copy
import ctypes
import os
import threading
import weakref
from ctypes import byref, c_int, c_size_t, c_uint64
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from . import _library as lib
from ._awaited import Awaited
from ._batch import Batch
from ._errors import Closed, ShortBuffer, check, error
from ._loop import LoopQueue
from ._wait import nap

Key = Union[str, bytes]
#: Anything with contiguous bytes: bytes, bytearray, memoryview, array.array, a NumPy array.
Buffer = Any
T = TypeVar("T")
_CALL_BYTES = ctypes.sizeof(lib.Call)
#: How often all pages of ``locate`` are asked for when the value is replaced meanwhile.
_LOCATE_ATTEMPTS = 8


class Item(NamedTuple):
    """A value with what is known of it."""

    value: bytes
    version: int
    flags: int
    #: Seconds to live; None = for ever.
    ttl: Optional[int]
    #: Length of the whole value.
    value_len: int


class Stat(NamedTuple):
    """What is known of a key."""

    value_len: int
    version: int
    flags: int
    ttl: Optional[int]
    #: Seconds since it was last read, and whether it has been since it was stored.
    idle: int
    was_read: bool
    #: Longest chunk, and data chunks of a stripe; 0 = it lies whole at one member.
    chunk_len: int
    data_chunks: int
    #: How bytes are dealt to them: "spread", "wide" or "copy".
    layout: str


class Span(NamedTuple):
    """Bytes of a value that lie on certain nodes, in turns of a cell."""

    start: int
    len: int
    cell_len: int
    nodes: List[Optional[int]]


class Places(NamedTuple):
    """Where a key is at home, and where its bytes lie."""

    slot: int
    group: int
    role: int
    primary: Optional[int]
    spans: List[Span]
    #: Of the value; 0 and 0 = there is none.
    version: int
    value_len: int

    @property
    def next_page(self) -> Optional[int]:
        """The byte from which on the rest is to be asked for; None if there is none."""
        end = self.spans[-1].start + self.spans[-1].len if self.spans else self.value_len
        return end if end < self.value_len else None


class _Lent:
    """Memory of an object, which stays where it is until this is given back."""

    __slots__ = ("address", "len", "_view")

    def __init__(self, value: Buffer, writable: bool) -> None:
        self._view: Optional[lib.Buffer] = None
        if type(value) is bytes and not writable:
            # It cannot change, and lives as long as this does.
            self.address: Any = value
            self.len = len(value)
            return
        view = lib.Buffer()
        lib.get_buffer(value, byref(view), lib.PYBUF_WRITABLE if writable else lib.PYBUF_SIMPLE)
        self._view, self.address, self.len = view, view.buf, view.len
        if writable and self.address is None:
            raise ValueError("the buffer is empty")

    def back(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            lib.release_buffer(byref(view))

    def __del__(self) -> None:
        self.back()


class Request(Awaited[T]):
    """Something that was asked. It ends by itself, at its deadline at the latest."""

    __slots__ = ("_client", "_handle", "_decode", "_lent", "_result")

    def __init__(self, client: "Client", decode: Callable[[int, lib.Outcome], T], lent: Optional[_Lent]) -> None:
        super().__init__()
        self._client, self._decode, self._lent = client, decode, lent
        self._handle = 0
        self._result: Any = None

    def done(self) -> bool:
        """Whether it is over."""
        if self._handle == 0:
            return True
        self._client._check_lives()
        is_over = c_int()
        check(lib.test(self._handle, byref(is_over)))
        return is_over.value == 1

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits, at most for so many seconds: whether it is over."""
        if self._handle == 0:
            return True
        self._client._check_lives()
        return nap(lambda millis: lib.wait(self._handle, millis), timeout)

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits and gives what it has come to, or raises it. ``TimeoutError`` if it is not over in time: then it goes on."""
        if not self.wait(timeout):
            raise TimeoutError("the request is not over")
        return self._take()

    def cancel(self) -> None:
        """Ends it now, if it is not over. A write may or may not have been done."""
        if self._handle != 0:
            self._client._check_lives()
            check(lib.cancel(self._handle))

    def _take(self) -> T:
        if self._handle != 0:
            outcome = lib.Outcome()
            code = lib.result(self._handle, byref(outcome))
            try:
                if code < 0:
                    self._error = error(code)
                    if isinstance(self._error, ShortBuffer):
                        self._error.needed = outcome.needed
                else:
                    self._result = self._decode(self._handle, outcome)
            finally:
                self._release()
        if self._error is not None:
            raise self._error
        return self._result

    def _release(self) -> None:
        """The library lets go of the buffer, then we do."""
        handle, self._handle = self._handle, 0
        if handle != 0 and self._client._lives:
            lib.release(handle)
        if self._lent is not None:
            self._lent.back()
            self._lent = None
        self._leave_queue()


#: Clients of this process that are not closed.
_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


def _key(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _in_range(name: str, number: int, bits: int) -> int:
    """ctypes would cut it off without a word."""
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} must be from 0 to 2**{bits} - 1: {number}")
    return number


def _ttl(outcome: lib.Outcome) -> Optional[int]:
    return None if outcome.ttl == lib.FOREVER else outcome.ttl


def _bytes(outcome: lib.Outcome) -> bytes:
    return ctypes.string_at(outcome.data, outcome.len) if outcome.len else b""


def _value(_: int, outcome: lib.Outcome) -> Optional[bytes]:
    return _bytes(outcome) if outcome.code == lib.OK else None


def _item(_: int, outcome: lib.Outcome) -> Optional[Item]:
    if outcome.code != lib.OK:
        return None
    return Item(_bytes(outcome), outcome.version, outcome.flags, _ttl(outcome), outcome.value_len)


def _filled(_: int, outcome: lib.Outcome) -> Optional[int]:
    return outcome.len if outcome.code == lib.OK else None


def _stored(_: int, outcome: lib.Outcome) -> Optional[int]:
    return outcome.version if outcome.code == lib.OK else None


def _version(_: int, outcome: lib.Outcome) -> int:
    return outcome.version


def _found(_: int, outcome: lib.Outcome) -> bool:
    return outcome.code == lib.OK


def _number(_: int, outcome: lib.Outcome) -> Optional[int]:
    return outcome.number if outcome.code == lib.OK else None


def _stat(_: int, outcome: lib.Outcome) -> Optional[Stat]:
    if outcome.code != lib.OK:
        return None
    return Stat(
        outcome.value_len,
        outcome.version,
        outcome.flags,
        _ttl(outcome),
        outcome.idle,
        outcome.was_read == 1,
        outcome.chunk_len,
        outcome.data_chunks,
        ("spread", "wide", "copy")[outcome.layout],
    )


def _places(handle: int, outcome: lib.Outcome) -> Places:
    place, count = lib.Place(), c_size_t()
    code = lib.places(handle, byref(place), None, 0, byref(count))
    spans = (lib.Span * count.value)()
    if code == lib.SHORT_BUFFER:
        code = lib.places(handle, byref(place), spans, count.value, byref(count))
    check(code)

    def node(number: int) -> Optional[int]:
        return None if number == lib.NOBODY else number

    return Places(
        place.slot,
        place.group,
        place.role,
        None if place.primary < 0 else place.primary,
        [Span(one.start, one.len, one.cell_len, [node(one.nodes[at]) for at in range(one.node_count)]) for one in spans],
        outcome.version,
        outcome.value_len,
    )


def connect(
    uri: str,
    *,
    timeout: float = 0,
    window: int = 0,
    max_requests: int = 0,
    check_buffers: bool = False,
) -> "Client":
    """A client of ``gestalt://HOST:PORT[,HOST:PORT...][/NAMESPACE]``, which are some native listeners of the cluster.

    ``timeout``: seconds that a request may take, and the making of the client; 0 = 10. ``check_buffers``: a write whose buffer was changed
    meanwhile raises :class:`BufferChanged`.
    """
    options = lib.Options(ctypes.sizeof(lib.Options), lib.CHECK_BUFFERS if check_buffers else 0)
    options.timeout_ms, options.window, options.max_requests = int(timeout * 1000), window, max_requests
    handle = c_uint64()
    check(lib.connect(uri.encode(), byref(options), byref(handle)))
    return Client(handle.value)


class Client:
    """A client of a cluster, by :func:`connect`. Threads and loops may share it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        #: How long requests may take; 0 = as the client was made.
        self._timeout_ms = 0
        #: Of which client this is the same with another time-out.
        self._of: Optional["Client"] = None
        #: False in a process that was forked off: nobody moves its bytes there.
        self._lives = True
        self._queues: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopQueue]" = weakref.WeakKeyDictionary()
        #: Held by who makes a queue of a loop: a loop has one thread, but a client may have several of both.
        self._opens = threading.Lock()
        _clients.add(self)

    def within(self, timeout: float) -> "Client":
        """The same client with another time-out for its requests, in seconds. It is closed with this one."""
        other = copy.copy(self)
        other._timeout_ms, other._of = max(1, int(timeout * 1000)), self
        _clients.add(other)
        return other

    def close(self) -> None:
        """Ends everything that is not over. To do it again does nothing."""
        if self._of is not None:
            return
        handle, self._handle = self._handle, 0
        if handle == 0 or not self._lives:
            return
        lib.close(handle)
        for queue in list(self._queues.values()):
            queue.close()
        self._queues.clear()

    def _check_lives(self) -> None:
        if not self._lives:
            raise Closed(-14, "the client was made before a fork")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _ask(
        self,
        function: Any,
        arguments: Tuple[Any, ...],
        decode: Callable[[int, lib.Outcome], T],
        waits: bool,
        call: Optional[lib.Call] = None,
        lent: Optional[_Lent] = None,
    ) -> "Request[T]":
        """Posts a request. ``waits``: nobody will await it."""
        if self._handle == 0:
            raise Closed(-14, "the client was closed, or made before a fork")
        request: "Request[T]" = Request(self, decode, lent)
        loop = None if waits else asyncio._get_running_loop()
        if loop is not None:
            call = call or lib.Call(_CALL_BYTES)
            queue = self._queue_of(loop)
            request._queue, request._tag = queue, queue.next_tag()
            request._future = queue.future(request._tag)
            call.queue, call.tag = queue.handle, request._tag
        if self._timeout_ms:
            call = call or lib.Call(_CALL_BYTES)
            call.timeout_ms = self._timeout_ms
        handle = c_uint64()
        check(function(self._handle, *arguments, None if call is None else byref(call), byref(handle)))
        request._handle = handle.value
        return request

    def _store(
        self, mode: int, key: Key, value: Union[str, Buffer], waits: bool, ttl: int, flags: int, version: Optional[int]
    ) -> "Request[Optional[int]]":
        key = _key(key)
        lent = _Lent(value.encode() if isinstance(value, str) else value, False)
        call = None
        if ttl or flags or version is not None:
            call = lib.Call(_CALL_BYTES)
            call.ttl, call.flags = _in_range("ttl", ttl, 32), _in_range("flags", flags, 32)
            if version is not None:
                call.set, call.version = lib.WITH_VERSION, _in_range("version", version, 64)
        return self._ask(lib.istore, (mode, key, len(key), lent.address, lent.len), _stored, waits, call, lent)

    def _get(
        self,
        key: Key,
        into: Optional[_Lent],
        decode: Callable[[int, lib.Outcome], T],
        waits: bool,
        offset: int = 0,
        length: Optional[int] = None,
        ttl: Optional[int] = None,
    ) -> "Request[T]":
        key = _key(key)
        call = None
        if offset or length is not None or ttl is not None:
            call = lib.Call(_CALL_BYTES)
            if offset or length is not None:
                call.set, call.offset = lib.WITH_RANGE, _in_range("offset", offset, 62)
                call.length = (1 << 62) - offset if length is None else _in_range("length", length, 62)
            if ttl is not None:
                call.set, call.ttl = call.set | lib.WITH_TTL, _in_range("ttl", ttl, 32)
        where = (None, 0) if into is None else (into.address, into.len)
        return self._ask(lib.iget, (key, len(key), *where), decode, waits, call, into)

    def _call_of_batch(self, batch: "Batch[Any]", waits: bool) -> lib.Call:
        """What is the same for all requests of a batch."""
        if self._handle == 0:
            raise Closed(-14, "the client was closed, or made before a fork")
        call = lib.Call(_CALL_BYTES)
        call.timeout_ms = self._timeout_ms
        loop = None if waits else asyncio._get_running_loop()
        if loop is not None and len(batch) > 0:
            queue = self._queue_of(loop)
            batch._in_loop(loop, queue)
            call.queue, call.tag = queue.handle, batch._tag
        return call

    def _batch_of_gets(self, keys: Sequence[Key], waits: bool) -> "Batch[Optional[bytes]]":
        names = [key.encode() if isinstance(key, str) else key for key in keys]
        batch: "Batch[Optional[bytes]]" = Batch(self, len(names), _value, (), True)
        call = self._call_of_batch(batch, waits)
        parts = (lib.Part * len(names))(*[(name, len(name), None, 0) for name in names])
        if names:
            check(lib.imget(self._handle, parts, len(names), byref(call), batch._handles))
        return batch

    def _batch_of_sets(
        self, items: Mapping[Key, Union[str, Buffer]], waits: bool, ttl: int, flags: int
    ) -> "Batch[int]":
        def memory(value: Union[str, Buffer]) -> Any:
            value = value.encode() if isinstance(value, str) else value
            # What cannot change needs nobody who lends it.
            return value if type(value) is bytes else _Lent(value, False)

        values = [memory(value) for value in items.values()]
        batch: "Batch[int]" = Batch(self, len(values), _version, values, False)
        call = self._call_of_batch(batch, waits)
        call.ttl, call.flags = _in_range("ttl", ttl, 32), _in_range("flags", flags, 32)
        handle = c_uint64()
        handles, store, own, same, place = batch._handles, lib.istore, self._handle, byref(call), byref(handle)
        for at, (key, value) in enumerate(zip(items, values)):
            name = key.encode() if isinstance(key, str) else key
            address, length = (value, len(value)) if type(value) is bytes else (value.address, value.len)
            check(store(own, lib.SET, name, len(name), address, length, same, place))
            handles[at] = handle.value
        return batch

    def _queue_of(self, loop: asyncio.AbstractEventLoop) -> LoopQueue:
        queue = self._queues.get(loop)
        if queue is None:
            with self._opens:
                # A queue keeps its loop, and so its own place here: nobody else would end it.
                for over in [known for known in self._queues.keys() if known.is_closed()]:
                    self._queues.pop(over).close()
                queue = self._queues[loop] = LoopQueue(loop)
        return queue

    def _count(self, key: Key, delta: int, initial: Optional[int], ttl: int, waits: bool) -> "Request[Optional[int]]":
        key = _key(key)
        call = None
        if initial is not None:
            call = lib.Call(_CALL_BYTES)
            call.set, call.initial = lib.WITH_INITIAL, _in_range("initial", initial, 64)
            call.ttl = _in_range("ttl", ttl, 32)
        function = lib.idecr if delta < 0 else lib.iincr
        return self._ask(function, (key, len(key), _in_range("the size of delta", abs(delta), 64)), _number, waits, call)

    def _simple(self, function: Any, key: Key, decode: Callable[[int, lib.Outcome], T], waits: bool, *more: Any) -> "Request[T]":
        key = _key(key)
        return self._ask(function, (key, len(key), *more), decode, waits)

    # Reads.

    def get(self, key: Key, *, offset: int = 0, length: Optional[int] = None, ttl: Optional[int] = None) -> Optional[bytes]:
        """The value, or the part of it from ``offset`` on, at most ``length`` bytes; None if there is none. With ``ttl`` it lives for so many
        seconds from now on, 0 = for ever."""
        return self._get(key, None, _value, True, offset, length, ttl).result()

    def iget(
        self, key: Key, *, offset: int = 0, length: Optional[int] = None, ttl: Optional[int] = None
    ) -> "Request[Optional[bytes]]":
        return self._get(key, None, _value, False, offset, length, ttl)

    def get_item(self, key: Key) -> Optional[Item]:
        """The value with its version, flags and seconds to live."""
        return self._get(key, None, _item, True).result()

    def iget_item(self, key: Key) -> "Request[Optional[Item]]":
        return self._get(key, None, _item, False)

    def get_into(self, key: Key, buffer: Buffer, *, offset: int = 0, length: Optional[int] = None) -> Optional[int]:
        """Reads the value into a writable buffer, such as a bytearray or a NumPy array: how many bytes; None if there is none.
        :class:`ShortBuffer` if it is longer than the buffer."""
        return self._get(key, _Lent(buffer, True), _filled, True, offset, length).result()

    def iget_into(
        self, key: Key, buffer: Buffer, *, offset: int = 0, length: Optional[int] = None
    ) -> "Request[Optional[int]]":
        """The same at once. The buffer is the request's until that is over."""
        return self._get(key, _Lent(buffer, True), _filled, False, offset, length)

    def get_many(self, keys: Sequence[Key]) -> List[Optional[bytes]]:
        """The values of several keys, asked for at the same time; None for each that there is not."""
        return self._batch_of_gets(keys, True).result()

    def iget_many(self, keys: Sequence[Key]) -> "Batch[Optional[bytes]]":
        """The same at once. It costs a fraction of as many ``iget``."""
        return self._batch_of_gets(keys, False)

    # Writes.

    def set(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> int:
        """Stores a value, for ``ttl`` seconds, 0 = as long as the namespace says: its version."""
        version = self._store(lib.SET, key, value, True, ttl, flags, None).result()
        assert version is not None, "a set has no condition"
        return version

    def iset(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> "Request[Optional[int]]":
        """The same at once. The buffer must not be changed until the request is over."""
        return self._store(lib.SET, key, value, False, ttl, flags, None)

    def set_many(self, items: Mapping[Key, Union[str, Buffer]], *, ttl: int = 0, flags: int = 0) -> List[int]:
        """Stores the values of several keys at the same time: their versions. If some fail the first error is raised, and the others may be
        stored."""
        return self._batch_of_sets(items, True, ttl, flags).result()

    def iset_many(self, items: Mapping[Key, Union[str, Buffer]], *, ttl: int = 0, flags: int = 0) -> "Batch[int]":
        """The same at once. No buffer must be changed until all of them are over."""
        return self._batch_of_sets(items, False, ttl, flags)

    def add(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> Optional[int]:
        """Stores a value where there is none: its version; None if there is one."""
        return self._store(lib.ADD, key, value, True, ttl, flags, None).result()

    def iadd(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> "Request[Optional[int]]":
        return self._store(lib.ADD, key, value, False, ttl, flags, None)

    def replace(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> Optional[int]:
        """Stores a value where there is one: its version; None if there is none."""
        return self._store(lib.REPLACE, key, value, True, ttl, flags, None).result()

    def ireplace(self, key: Key, value: Union[str, Buffer], *, ttl: int = 0, flags: int = 0) -> "Request[Optional[int]]":
        return self._store(lib.REPLACE, key, value, False, ttl, flags, None)

    def cas(self, key: Key, value: Union[str, Buffer], version: int, *, ttl: int = 0, flags: int = 0) -> Optional[int]:
        """Stores a value in the place of one of this version: its own version; None if another one is there, or none."""
        return self._store(lib.SET, key, value, True, ttl, flags, version).result()

    def icas(
        self, key: Key, value: Union[str, Buffer], version: int, *, ttl: int = 0, flags: int = 0
    ) -> "Request[Optional[int]]":
        return self._store(lib.SET, key, value, False, ttl, flags, version)

    def append(self, key: Key, value: Union[str, Buffer]) -> Optional[int]:
        """Puts bytes behind a value: its version; None if there is none."""
        return self._store(lib.APPEND, key, value, True, 0, 0, None).result()

    def iappend(self, key: Key, value: Union[str, Buffer]) -> "Request[Optional[int]]":
        return self._store(lib.APPEND, key, value, False, 0, 0, None)

    def prepend(self, key: Key, value: Union[str, Buffer]) -> Optional[int]:
        """Puts bytes before a value: its version; None if there is none."""
        return self._store(lib.PREPEND, key, value, True, 0, 0, None).result()

    def iprepend(self, key: Key, value: Union[str, Buffer]) -> "Request[Optional[int]]":
        return self._store(lib.PREPEND, key, value, False, 0, 0, None)

    def delete(self, key: Key) -> bool:
        """Removes a key: whether it was there."""
        return self._simple(lib.idelete, key, _found, True).result()

    def idelete(self, key: Key) -> "Request[bool]":
        return self._simple(lib.idelete, key, _found, False)

    def incr(self, key: Key, delta: int = 1, *, initial: Optional[int] = None, ttl: int = 0) -> Optional[int]:
        """Adds to a number, or takes from it below 0, where it stops at 0: the number. If there is none: None, or ``initial``, which then lives
        for ``ttl`` seconds."""
        return self._count(key, delta, initial, ttl, True).result()

    def iincr(self, key: Key, delta: int = 1, *, initial: Optional[int] = None, ttl: int = 0) -> "Request[Optional[int]]":
        return self._count(key, delta, initial, ttl, False)

    def touch(self, key: Key, ttl: int) -> bool:
        """Lets a key live for so many seconds from now on, 0 = for ever: whether it is there."""
        return self._simple(lib.itouch, key, _found, True, _in_range("ttl", ttl, 32)).result()

    def itouch(self, key: Key, ttl: int) -> "Request[bool]":
        return self._simple(lib.itouch, key, _found, False, _in_range("ttl", ttl, 32))

    # What is known.

    def stat(self, key: Key) -> Optional[Stat]:
        """What is known of a key; None if there is none."""
        return self._simple(lib.istat, key, _stat, True).result()

    def istat(self, key: Key) -> "Request[Optional[Stat]]":
        return self._simple(lib.istat, key, _stat, False)

    def locate(self, key: Key) -> Places:
        """Where a key is at home, and where its bytes lie, all of them: one request for every 512 stripes of the value.
        :class:`Changed` if it is replaced again and again meanwhile."""
        for _ in range(_LOCATE_ATTEMPTS):
            places = self._locate(key, 0, True).result()
            while (offset := places.next_page) is not None:
                page = self._locate(key, offset, True).result()
                if page.version != places.version or not page.spans:
                    break
                places = places._replace(spans=places.spans + page.spans)
            else:
                return places
        raise error(lib.CHANGED)

    def ilocate(self, key: Key, *, offset: int = 0) -> "Request[Places]":
        """A page of that, at most 512 stripes from the one on that has the byte ``offset``; ``next_page`` says where the next one begins."""
        return self._locate(key, offset, False)

    def _locate(self, key: Key, offset: int, waits: bool) -> "Request[Places]":
        key = _key(key)
        call = lib.Call(_CALL_BYTES)
        if offset:
            call.set, call.offset = lib.WITH_OFFSET, _in_range("offset", offset, 62)
        return self._ask(lib.ilocate, (key, len(key)), _places, waits, call)

    def scan(self, prefix: Key = b"") -> Iterator[bytes]:
        """The keys that begin with a prefix, as they come: in no order, each that is there throughout at least once. Ends with
        ``Corrupt`` if there were items whose keys are damaged. Nodes allow it with ``--native-scans``."""
        handle, begin = c_uint64(), _key(prefix)
        check(lib.scan_open(self._handle, begin, len(begin), byref(handle)))
        key, length, code = ctypes.create_string_buffer(lib.MAX_KEY), c_size_t(), lib.OK

        def wait(millis: int) -> int:
            nonlocal code
            code = lib.scan_next(handle, key, lib.MAX_KEY, byref(length), millis)
            return code

        try:
            while nap(wait, None) and code == lib.OK:
                yield key.raw[: length.value]
        finally:
            if self._lives:
                lib.scan_close(handle)


def _handles(requests: Sequence["Request[Any]"]) -> Any:
    return (c_uint64 * len(requests))(*[request._handle for request in requests])


def wait_any(requests: Sequence["Request[Any]"], timeout: Optional[float] = None) -> Optional[int]:
    """Waits for the first of them that is over: its index; None if none is in time."""
    for index, request in enumerate(requests):
        if request._handle == 0:
            return index
        request._client._check_lives()
    handles, first = _handles(requests), c_size_t()
    has_come = nap(lambda millis: lib.wait_any(handles, len(requests), millis, byref(first)), timeout)
    return first.value if has_come else None


def wait_all(requests: Sequence["Request[Any]"], timeout: Optional[float] = None) -> bool:
    """Waits for all of them: whether they are over in time."""
    left = [request for request in requests if request._handle != 0]
    for request in left:
        request._client._check_lives()
    handles = _handles(left)
    return nap(lambda millis: lib.wait_all(handles, len(left), millis), timeout)


def _after_fork() -> None:
    for client in list(_clients):
        client._handle, client._lives = 0, False


os.register_at_fork(after_in_child=_after_fork)
