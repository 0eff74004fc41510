import array
import gc
import os
import socket
import threading
import time

import numpy
import pytest

import gestalt


def test_values_have_versions_flags_and_lives(client):
    version = client.set("k", b"hello", ttl=600, flags=7)
    item = client.get_item("k")
    assert (item.value, item.version, item.flags, item.value_len) == (b"hello", version, 7, 5)
    assert 500 < item.ttl <= 600
    assert client.get("k", offset=1, length=3) == b"ell"
    assert client.get("k", offset=3) == b"lo"
    assert client.get("k", ttl=0) == b"hello" and client.get_item("k").ttl is None
    assert client.get("none") is None and client.get_item("none") is None
    assert client.cas("k", "x", version + 1) is None
    assert client.cas("k", "x", client.get_item("k").version) > 0
    assert client.get_many(["k", "none"]) == [b"x", None]
    stat = client.stat("k")
    assert (stat.value_len, stat.chunk_len, stat.was_read) == (1, 0, True) and client.stat("none") is None
    places = client.locate("k")
    assert places.spans == [gestalt.Span(0, 1, 0, [places.primary])] and client.locate("none").spans == []
    assert (places.version, places.value_len, places.next_page) == (stat.version, 1, None)
    assert client.ilocate("k", offset=1).result().spans == []


def test_all_pages_of_a_value_are_located_and_of_one_value_only(client, monkeypatch):
    versions = iter([1, 1, 2, 3, 3, 3])

    def page(key, offset, waits):
        span = gestalt.Span(offset, 4, 0, [1])

        class Page:
            def result(self):
                return gestalt.Places(0, 0, 0, 1, [span], next(versions), 12)

        return Page()

    monkeypatch.setattr(client, "_locate", page)
    places = client.locate("k")
    assert (places.version, [span.start for span in places.spans], places.next_page) == (3, [0, 4, 8], None)
    versions = iter(range(100))
    with pytest.raises(gestalt.Changed):
        client.locate("k")


def test_of_a_batch_the_first_failure_is_raised_and_nothing_stays_lent(client, uri):
    value = bytearray(b"value")
    for items in [{"k1": value, "": b"v", "k2": value}, {"k1": value, "k2": b"v", "k" * 251: value}]:
        with pytest.raises(gestalt.BadKey):
            client.set_many(items)
        with pytest.raises(gestalt.BadKey):
            client.iget_many(list(items))
        value.append(0)
    with gestalt.connect(uri.replace("/default", "/nobody")) as other:
        batch = other.iset_many({"k1": value, "k2": value})
        with pytest.raises(gestalt.NoNamespace):
            batch.result()
        value.append(0)
        with pytest.raises(gestalt.NoNamespace):
            batch.result()
    with pytest.raises(gestalt.Closed):
        other.get_many(["k"])
    assert client.set_many({"k1": "v", b"k2": b"w"}, ttl=600) and client.get_many([b"k1", "k2"]) == [b"v", b"w"]
    assert 500 < client.get_item("k2").ttl <= 600
    batch = client.iset_many({"k1": b"v" * 200_000, "k2": b"v" * 200_000})
    batch.cancel()
    try:
        assert len(batch.result()) == len(batch) == 2
    except gestalt.Cancelled as cancelled:
        assert not cancelled.changed_nothing


def test_numbers_count(client):
    client.delete("n")
    assert client.incr("n") is None
    assert client.incr("n", 5, initial=40) == 40
    assert client.incr("n", 5) == 45
    assert client.incr("n", -50) == 0


def test_numpy_arrays_are_read_into_without_a_copy(client):
    numbers = numpy.arange(100_000, dtype=numpy.float32)
    client.set("numbers", numpy.ascontiguousarray(numbers))
    back = numpy.zeros_like(numbers)
    assert client.get_into("numbers", back) == numbers.nbytes
    assert (back == numbers).all()
    assert client.get_into("numbers", back[:10], offset=400, length=40) == 40
    assert (back[:10] == numbers[100:110]).all()
    assert client.get_into("none", back) is None
    with pytest.raises(gestalt.ShortBuffer) as short:
        client.get_into("numbers", back[:10])
    assert short.value.needed == numbers.nbytes
    with pytest.raises(BufferError):
        client.get_into("numbers", b"read only")
    with pytest.raises((BufferError, ValueError)):
        client.set("numbers", numbers[::2])
    for value in [bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc"), "abc"]:
        client.set("k", value)
        assert client.get("k") == b"abc"


def test_a_buffer_is_the_requests_until_that_is_over(client):
    value = bytearray(200_000)
    request = client.iset("k", value)
    with pytest.raises(BufferError):
        value.append(1)
    assert request.result() > 0
    value.append(1)
    # One that had ended before the change has nothing to say of it.
    with pytest.raises(gestalt.BufferChanged):
        for _ in range(100):
            request = client.iset("k", value)
            value[100_000] ^= 1
            request.result()
    # Dropped in the middle: the buffer is free at once.
    for _ in range(50):
        into = bytearray(200_001)
        client.iget_into("k", into)
        client.iset("k", into)
        gc.collect()
        into.append(1)


def test_requests_overlap(client):
    requests = [client.iset(f"r{at}", str(at)) for at in range(1000)]
    assert gestalt.wait_any(requests) is not None
    assert gestalt.wait_all(requests)
    assert all(request.done() and request.result() > 0 for request in requests)
    assert requests[0].result() == requests[0].result(), "a result can be looked at again"
    gets = [client.iget(f"r{at}") for at in range(1000)]
    assert [int(get.result()) for get in gets] == list(range(1000))
    assert gestalt.wait_any(gets) == 0 and gestalt.wait_all(gets)


def test_errors_are_told_apart(client, uri):
    for bad in ["", "k" * 251]:
        with pytest.raises(gestalt.BadKey) as raised:
            client.get(bad)
        assert raised.value.changed_nothing and isinstance(raised.value, ValueError)
    client.set("k", "text")
    with pytest.raises(gestalt.NotANumber, match="no number"):
        client.incr("k")
    with pytest.raises(gestalt.GestaltError, match="gestalt://"):
        gestalt.connect("http://127.0.0.1")
    with gestalt.connect(uri.replace("/default", "/nobody")) as other:
        with pytest.raises(gestalt.NoNamespace):
            other.get("k")
    request = other.iget
    with pytest.raises(gestalt.Closed):
        request("k")
    other.close()


def test_deadlines_are_kept_and_requests_can_be_cancelled():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"gestalt://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(gestalt.Unreachable) as raised:
            gestalt.connect(uri, timeout=0.3)
        assert isinstance(raised.value, ConnectionError) and 0.2 < time.monotonic() - begun < 10


def test_a_request_that_is_cancelled_or_closed_says_so(uri):
    client = gestalt.connect(uri)
    request = client.iget("k")
    request.cancel()
    try:
        request.result()
    except gestalt.Cancelled as cancelled:
        assert not cancelled.changed_nothing
    waiting = [client.iget("k") for _ in range(100)]
    client.close()
    for request in waiting:
        try:
            request.result()
        except gestalt.Closed:
            pass


def test_a_client_with_another_time_out_is_the_same_client(client, uri):
    client.set("k", "v")
    assert client.within(5).get("k") == b"v"
    # So short that it is over before anybody has answered, or is not.
    ends = [client.within(0.001).iget("k") for _ in range(2000)]
    assert gestalt.wait_all(ends, 10)
    for end in ends:
        try:
            assert end.result() == b"v"
        except gestalt.GestaltError as late:
            assert late.name in ("TimedOut", "Unreachable", "Late")
    other = gestalt.connect(uri)
    view = other.within(5)
    view.close()
    assert other.get("k") == b"v"
    other.close()
    with pytest.raises(gestalt.Closed):
        view.get("k")


def test_threads_share_a_client(client):
    def work(number):
        for at in range(100):
            client.set(f"t{number}", str(at))
            assert client.get(f"t{number}") == str(at).encode()

    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


def test_numbers_out_of_range_are_refused(client):
    client.set("n", "1")
    for ask in [
        lambda: client.set("n", "2", ttl=-1),
        lambda: client.set("n", "2", flags=1 << 32),
        lambda: client.set_many({"n": "2"}, ttl=1 << 32),
        lambda: client.cas("n", "2", -1),
        lambda: client.touch("n", -1),
        lambda: client.incr("n", 1 << 64),
        lambda: client.incr("n", 1, initial=-1),
        lambda: client.get("n", offset=-1),
        lambda: client.get("n", length=-1),
        lambda: client.get("n", ttl=1 << 32),
    ]:
        with pytest.raises(ValueError):
            ask()
    assert client.get("n") == b"1"


def test_a_process_that_is_forked_off_has_no_client(client, uri):
    request = client.iget("k")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            client.get("k")
        except gestalt.Closed:
            with pytest.raises(gestalt.Closed):
                request.result(0.1)
            with pytest.raises(gestalt.Closed):
                gestalt.wait_all([request])
            del request
            with gestalt.connect(uri) as own:
                own.set("child", "was here")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    request.result()
    assert client.get("child") == b"was here"
