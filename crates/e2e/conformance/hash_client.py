"""pymemcache's HashClient over all nodes, with the settings of docs/clients.md, while one of them is killed.

Arguments: the process to kill, then the ports. Prints how many reads of keys that are there found nothing, and how many failed.
"""

import os
import signal
import sys

from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheError

KEYS, ROUNDS, KILL_AT = 1000, 4, 1200

pid, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
client = HashClient(
    [("127.0.0.1", port) for port in ports],
    retry_attempts=0,
    dead_timeout=30,
    no_delay=True,
    connect_timeout=6,
    timeout=6,
)
for key in range(KEYS):
    client.set(f"key{key}", f"value{key}")
misses = errors = 0
for read in range(KEYS * ROUNDS):
    if read == KILL_AT:
        os.kill(pid, signal.SIGKILL)
    key = read % KEYS
    try:
        value = client.get(f"key{key}")
    except (OSError, MemcacheError):
        errors += 1
        continue
    misses += value is None
    if value not in (None, f"value{key}".encode()):
        sys.exit(f"key{key} is {value!r}")
print(f"{misses} false misses, {errors} errors of {KEYS * ROUNDS} reads")
