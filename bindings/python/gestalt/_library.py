"""The C library as ctypes sees it: gestalt.h says what everything means.

What waits is called without the interpreter's lock, what does not wait keeps it: letting go of it costs more than the call.
"""

import ctypes
import os
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p

ABI = 3
OK, MISS, NOT_STORED, EXISTS = range(4)
FULL, SHORT_BUFFER, PENDING, CHANGED, SYSTEM = -5, -10, -11, -24, -26
CHECK_BUFFERS = 2
WITH_VERSION, WITH_RANGE, WITH_TTL, WITH_INITIAL, WITH_OFFSET = 1, 2, 4, 8, 16
SET, ADD, REPLACE, APPEND, PREPEND = range(5)
FOREVER, NOBODY = 0xFFFFFFFF, 0xFFFF
MAX_KEY = 250


class Options(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("set", c_uint32),
        ("timeout_ms", c_uint64),
        ("window", c_uint32),
        ("max_requests", c_uint32),
    ]


class Call(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("set", c_uint32),
        ("queue", c_uint64),
        ("tag", c_uint64),
        ("timeout_ms", c_uint64),
        ("version", c_uint64),
        ("offset", c_uint64),
        ("length", c_uint64),
        ("initial", c_uint64),
        ("flags", c_uint32),
        ("ttl", c_uint32),
    ]


class Part(Structure):
    _fields_ = [("key", c_char_p), ("key_len", c_size_t), ("buffer", c_void_p), ("buffer_len", c_size_t)]


class Outcome(Structure):
    _fields_ = [
        ("code", c_int32),
        ("flags", c_uint32),
        ("tag", c_uint64),
        ("data", c_void_p),
        ("len", c_uint64),
        ("needed", c_uint64),
        ("value_len", c_uint64),
        ("version", c_uint64),
        ("number", c_uint64),
        ("ttl", c_uint32),
        ("idle", c_uint32),
        ("was_read", c_uint32),
        ("chunk_len", c_uint32),
        ("data_chunks", c_uint32),
        ("layout", c_uint32),
    ]


class Event(Structure):
    _fields_ = [("request", c_uint64), ("tag", c_uint64), ("code", c_int32), ("reserved", c_uint32)]


class Place(Structure):
    _fields_ = [("slot", c_uint32), ("group", c_uint32), ("role", c_uint32), ("primary", c_int32)]


class Span(Structure):
    _fields_ = [
        ("start", c_uint64),
        ("len", c_uint64),
        ("cell_len", c_uint32),
        ("node_count", c_uint32),
        ("nodes", POINTER(c_uint16)),
    ]


class Buffer(Structure):
    """``Py_buffer``."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, POINTER(Buffer), c_int]
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = [POINTER(Buffer)]
release_buffer.restype = None
PYBUF_SIMPLE, PYBUF_WRITABLE = 0, 1


def _path() -> str:
    beside = os.path.join(os.path.dirname(__file__), "libgestalt.so.3")
    named = os.environ.get("GESTALT_LIBRARY")
    return named or (beside if os.path.exists(beside) else "libgestalt.so.3")


_quick, _waiting = ctypes.PyDLL(_path()), ctypes.CDLL(_path())

_HANDLE, _KEY = c_uint64, [c_char_p, c_size_t]
_ASKS = [POINTER(Call), POINTER(c_uint64)]


def _function(library, name, arguments, result=c_int):
    function = getattr(library, "gestalt_" + name)
    function.argtypes, function.restype = arguments, result
    return function


abi = _function(_quick, "abi", [], c_uint32)
version = _function(_quick, "version", [], c_char_p)
last_error = _function(_quick, "last_error", [], c_char_p)
code_name = _function(_quick, "code_name", [c_int], c_char_p)
code_text = _function(_quick, "code_text", [c_int], c_char_p)
changed_nothing = _function(_quick, "changed_nothing", [c_int])

connect = _function(_waiting, "connect", [c_char_p, POINTER(Options), POINTER(c_uint64)])
close = _function(_waiting, "close", [_HANDLE])

istore = _function(_quick, "istore", [_HANDLE, c_int, *_KEY, c_void_p, c_size_t, *_ASKS])
iget = _function(_quick, "iget", [_HANDLE, *_KEY, c_void_p, c_size_t, *_ASKS])
imget = _function(_quick, "imget", [_HANDLE, POINTER(Part), c_size_t, POINTER(Call), POINTER(c_uint64)])
idelete = _function(_quick, "idelete", [_HANDLE, *_KEY, *_ASKS])
iincr = _function(_quick, "iincr", [_HANDLE, *_KEY, c_uint64, *_ASKS])
idecr = _function(_quick, "idecr", [_HANDLE, *_KEY, c_uint64, *_ASKS])
itouch = _function(_quick, "itouch", [_HANDLE, *_KEY, c_uint32, *_ASKS])
istat = _function(_quick, "istat", [_HANDLE, *_KEY, *_ASKS])
ilocate = _function(_quick, "ilocate", [_HANDLE, *_KEY, *_ASKS])

test = _function(_quick, "test", [_HANDLE, POINTER(c_int)])
wait = _function(_waiting, "wait", [_HANDLE, c_int64])
wait_any = _function(_waiting, "wait_any", [POINTER(c_uint64), c_size_t, c_int64, POINTER(c_size_t)])
wait_all = _function(_waiting, "wait_all", [POINTER(c_uint64), c_size_t, c_int64])
cancel = _function(_quick, "cancel", [_HANDLE])
release = _function(_quick, "release", [_HANDLE])
result = _function(_quick, "result", [_HANDLE, POINTER(Outcome)])
finish = _function(_quick, "finish", [_HANDLE, POINTER(Outcome)])
places = _function(_quick, "places", [_HANDLE, POINTER(Place), POINTER(Span), c_size_t, POINTER(c_size_t)])

scan_open = _function(_quick, "scan_open", [_HANDLE, *_KEY, POINTER(c_uint64)])
scan_next = _function(_waiting, "scan_next", [_HANDLE, c_void_p, c_size_t, POINTER(c_size_t), c_int64])
scan_close = _function(_quick, "scan_close", [_HANDLE])

queue_open = _function(_quick, "queue_open", [POINTER(c_uint64)])
queue_fd = _function(_quick, "queue_fd", [_HANDLE])
queue_poll = _function(_quick, "queue_poll", [_HANDLE, POINTER(Event), c_size_t, c_int64, POINTER(c_size_t)])
queue_close = _function(_quick, "queue_close", [_HANDLE])

if abi() != ABI:
    raise ImportError(f"the library has the interface {abi()}, this package is for {ABI}")
