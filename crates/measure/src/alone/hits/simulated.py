"""Hit ratios of eviction algorithms: a line `NAME RATIO` for each.

Arguments: a file with a line `key bytes` for each request, and the bytes of the cache.
"""

import sys

import libcachesim

path, size = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    requests = [tuple(map(int, line.split())) for line in file]
for name in ("S3FIFO", "LRU", "Clock"):
    cache = getattr(libcachesim, name)(size)
    hits = 0
    for time, (key, length) in enumerate(requests):
        request = libcachesim.Request()
        request.clock_time, request.obj_id, request.obj_size = time, key, length
        hits += cache.get(request)
    print(name, hits / len(requests))
