import asyncio
import os

import pytest

import gestalt


def test_requests_are_awaited(client):
    async def story():
        assert await client.iset("a", "1") > 0
        assert await client.iget("a") == b"1"
        keys = [f"a{at}" for at in range(5000)]
        await asyncio.gather(*[_await(client.iset(key, key)) for key in keys])
        values = await asyncio.gather(*[_await(client.iget(key)) for key in keys])
        assert values == [key.encode() for key in keys]
        buffer = bytearray(5)
        assert await client.iget_into("a4999", buffer) == 5 and buffer == b"a4999"
        with pytest.raises(gestalt.NotANumber):
            await client.iincr("a1")
        assert (await client.istat("a")).value_len == 1
        # Blocking ones still work there.
        assert client.get("a") == b"1"

    asyncio.run(story())
    # Another loop has another queue.
    asyncio.run(story())


async def _await(request):
    return await request


def test_what_is_not_awaited_any_more_is_released(client):
    async def story():
        client.set("long", b"x" * 1_000_000)
        buffers = [bytearray(1_000_000) for _ in range(64)]
        tasks = [asyncio.ensure_future(_await(client.iget_into("long", buffer))) for buffer in buffers]
        await asyncio.sleep(0)
        [task.cancel() for task in tasks]
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert any(isinstance(end, asyncio.CancelledError) for end in ends), "some were too late"
        del tasks
        [buffer.append(1) for buffer in buffers]
        assert await client.iget("long", length=1) == b"x"

    asyncio.run(story())


def test_a_request_of_no_loop_can_be_awaited(client):
    request = client.iset("k", "v")
    assert asyncio.run(_await(request)) > 0


def test_a_client_that_is_closed_keeps_nobody_waiting(uri):
    async def story():
        client = gestalt.connect(uri)
        tasks = [asyncio.ensure_future(_await(client.iget("k"))) for _ in range(100)]
        await asyncio.sleep(0)
        client.close()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, (bytes, gestalt.Closed))

    asyncio.run(story())


def test_batches_are_awaited_as_one(client):
    async def story():
        items = {f"b{at}": f"{at}" * 3 for at in range(2000)}
        versions = await client.iset_many(items)
        assert len(versions) == 2000 and min(versions) > 0
        values = await client.iget_many([*items, "none"])
        assert values == [value.encode() for value in items.values()] + [None]
        assert await client.iget_many([]) == [] and await client.iset_many({}) == []
        # Several at a time, and single ones beside them.
        batches = [client.iget_many(list(items)[at : at + 100]) for at in range(0, 2000, 100)]
        one = client.iget("b7")
        assert [len(await batch) for batch in reversed(batches)] == [100] * 20 and await one == b"777"
        batch = client.iget_many(["b1", "b2"])
        assert await batch == await batch == [b"111", b"222"], "it can be looked at again"

    asyncio.run(story())
    # Outside of a loop, and of another one.
    batch = client.iget_many(["b1", "none"])
    assert batch.wait(30) and batch.done() and batch.result() == [b"111", None]
    asyncio.run(story())


def test_a_batch_that_is_not_awaited_any_more_is_released(client):
    async def story():
        values = [bytearray(100_000) for _ in range(50)]
        task = asyncio.ensure_future(_await(client.iset_many({f"r{at}": value for at, value in enumerate(values)})))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        [value.append(1) for value in values]
        # Dropped at once.
        client.iset_many({"r0": values[0]})
        values[0].append(1)
        assert await client.iget_many(["none"]) == [None]

    asyncio.run(story())


def test_loops_that_are_over_leave_nothing_open(client):
    async def reads():
        await client.iget("k")

    asyncio.run(reads())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        asyncio.run(reads())
    assert len(os.listdir("/proc/self/fd")) == before
