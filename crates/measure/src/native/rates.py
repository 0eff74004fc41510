"""What a program in Python gets done, in turns: see python.rs.

Arguments: the URI of a cluster, rounds, milliseconds of each turn. Prints a line of JSON for each way to ask: what, unit, the rate of each round.
"""

import asyncio
import json
import sys
import time

import numpy

import gestalt

KEYS = [f"key-{number}" for number in range(10_000)]
VALUE = b"v" * 100
#: Operations of a batch, and batches (or as many operations one by one) in flight.
BATCH, BATCHES = 250, 4
LENGTHS = [1 << 20, 16 << 20]
#: Arrays that are read into at the same time.
ARRAYS = 2


async def together(client, write, keys):
    if write:
        await client.iset_many(dict.fromkeys(keys, VALUE))
    else:
        values = await client.iget_many(keys)
        assert values[0] == values[-1] == VALUE


async def one_by_one(client, write, keys):
    requests = [client.iset(key, VALUE) if write else client.iget(key) for key in keys]
    for request in requests:
        assert await request is not None


async def small(client, ask, write, seconds):
    """Thousands of operations a second."""
    begun, done = time.perf_counter(), 0

    async def go_on(at):
        nonlocal done
        while time.perf_counter() - begun < seconds:
            await ask(client, write, KEYS[at : at + BATCH])
            done += BATCH
            at = (at + BATCH) % len(KEYS)

    await asyncio.gather(*[go_on(at * len(KEYS) // BATCHES) for at in range(BATCHES)])
    return done / (time.perf_counter() - begun) / 1e3


def long(client, length, count, seconds):
    """Gigabytes a second into so many arrays at a time."""
    arrays = [numpy.empty(length, numpy.uint8) for _ in range(count)]
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        if count == 1:
            assert client.get_into(f"long-{length}", arrays[0]) == length
        else:
            requests = [client.iget_into(f"long-{length}", array) for array in arrays]
            assert all(request.result() == length for request in requests)
        done += count * length
    return done / (time.perf_counter() - begun) / 1e9


def ways(client, seconds):
    for name, ask in (("one by one", one_by_one), (f"in batches of {BATCH}", together)):
        for write in (True, False):
            what = f"{'SET' if write else 'GET'} of {len(VALUE)} B from asyncio, {BATCH * BATCHES} in flight, {name}"
            yield what, "kops/s", lambda ask=ask, write=write: asyncio.run(small(client, ask, write, seconds))
    for length in LENGTHS:
        for count in (1, ARRAYS):
            what = f"get_into of {length >> 20} MiB into NumPy's arrays, {count} at a time"
            yield what, "GB/s", lambda length=length, count=count: long(client, length, count, seconds)


def main(uri, rounds, milliseconds):
    with gestalt.connect(uri) as client:
        client.set_many(dict.fromkeys(KEYS, VALUE))
        for length in LENGTHS:
            client.set(f"long-{length}", numpy.full(length, 111, numpy.uint8))
        all_ways = list(ways(client, milliseconds / 1e3))
        rates = [[measure() for _, _, measure in all_ways] for _ in range(rounds)]
        for (what, unit, _), of_way in zip(all_ways, zip(*rates)):
            print(json.dumps([what, unit, of_way]))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
