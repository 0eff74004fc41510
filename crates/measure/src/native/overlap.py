"""How much of a transfer's time Python can compute in: the turns of overlap.rs, with NumPy as what is computed.

Arguments: the URI of a cluster, transfers, lengths. Prints a line of JSON for each kind: whether it writes, length, and the medians of pure, computed
and both in microseconds.
"""

import json
import statistics
import sys
import time

import numpy

import gestalt

KEY = "overlap"
ONE, OTHER = numpy.full(4096, 1.0, numpy.float32), numpy.full(4096, 1e-7, numpy.float32)


def compute(steps):
    for _ in range(steps):
        numpy.add(ONE, OTHER, out=ONE)


def timed(work, *arguments):
    begun = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - begun) * 1e6


def step_us():
    return min(timed(compute, 100) for _ in range(200)) / 100


def transfer(client, write, array, steps):
    request = client.iset(KEY, array) if write else client.iget_into(KEY, array)
    compute(steps)
    request.result()


def measure(client, write, array, transfers, step):
    def once(steps):
        return timed(transfer, client, write, array, steps)

    steps = int(statistics.median(once(0) for _ in range(transfers)) / step)
    turns = [(once(0), timed(compute, steps), once(steps)) for _ in range(transfers)]
    return [statistics.median(column) for column in zip(*turns)]


def main(uri, transfers, lengths):
    step = step_us()
    with gestalt.connect(uri) as client:
        for length in lengths:
            array = numpy.full(length, 111, numpy.uint8)
            for write in (1, 0):
                medians = measure(client, bool(write), array, transfers, step)
                print(json.dumps([write, length, *medians]))


main(sys.argv[1], int(sys.argv[2]), [int(length) for length in sys.argv[3:]])
