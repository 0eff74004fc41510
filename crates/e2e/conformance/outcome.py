"""Loads values with a stock client, and reads every one of them back.

usage: outcome.py load HOST:PORT COUNT
       outcome.py verify HOST:PORT[,HOST:PORT…] COUNT    each value through every one of the nodes in turn
"""

import hashlib
import sys

from pymemcache.client.base import Client

VALUE_BYTES = 1024
BATCH = 200


def value_of(number):
    return hashlib.shake_128(b"value %d" % number).digest(VALUE_BYTES)


def batches(count):
    for first in range(0, count, BATCH):
        yield range(first, min(first + BATCH, count))


def client_of(address):
    host, port = address.rsplit(":", 1)
    return Client((host, int(port)), connect_timeout=5, timeout=30, no_delay=True)


def load(address, count):
    client = client_of(address)
    for batch in batches(count):
        failed = client.set_many({f"outcome-{n}": value_of(n) for n in batch}, noreply=False)
        if failed:
            sys.exit(f"not stored: {failed[:5]}")
    print(f"{count} values stored")


def verify(addresses, count):
    clients = [client_of(address) for address in addresses]
    missing, wrong = [], []
    for turn, batch in enumerate(batches(count)):
        found = clients[turn % len(clients)].get_many([f"outcome-{n}" for n in batch])
        for n in batch:
            value = found.get(f"outcome-{n}")
            if value is None:
                missing.append(n)
            elif value != value_of(n):
                wrong.append(n)
    if missing or wrong:
        sys.exit(f"{len(missing)} missing (first {missing[:5]}), {len(wrong)} wrong (first {wrong[:5]})")
    print(f"{count} values read back, byte for byte")


def main():
    verb, addresses, count = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
    if verb == "load":
        load(addresses[0], count)
    else:
        verify(addresses, count)


main()
