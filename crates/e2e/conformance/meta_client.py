"""Drives a server with meta-memcache, a client of the meta protocol that others wrote, and checks every answer.

usage: meta_client.py HOST:PORT
"""

import random
import sys
import time

from meta_memcache import CacheClient, Key, ServerAddress, SetMode, connection_pool_factory_builder
from meta_memcache.configuration import LeasePolicy, RecachePolicy, StalePolicy


def client_for(address):
    host, port = address.rsplit(":", 1)
    return CacheClient.cache_client_from_servers(
        servers=[ServerAddress(host, int(port))],
        connection_pool_factory_fn=connection_pool_factory_builder(),
    )


def sets_and_gets(pool):
    assert pool.set(Key("plain"), b"value", ttl=60)
    assert pool.get(Key("plain")) == b"value"
    assert pool.get(Key("absent")) is None
    assert pool.set(Key("empty"), b"", ttl=60)
    assert pool.get(Key("empty")) == b""
    large = random.Random(1).randbytes(300_000)
    assert pool.set(Key("large"), large, ttl=60)
    assert pool.get(Key("large")) == large
    assert pool.set(Key("object"), {"a": [1, 2, 3]}, ttl=60)
    assert pool.get(Key("object")) == {"a": [1, 2, 3]}


def keys_beyond_ascii_and_beyond_the_limit(pool):
    """The client sends the first as base64 and hashes the second."""
    for key in (Key("schlüssel mit blank"), Key("k" * 400)):
        assert pool.set(key, b"v", ttl=60)
        assert pool.get(key) == b"v"
        assert pool.delete(key)
        assert pool.get(key) is None


def modes(pool):
    key = Key("modes")
    pool.delete(key)
    assert not pool.set(key, b"1", ttl=60, set_mode=SetMode.REPLACE)
    assert pool.set(key, b"1", ttl=60, set_mode=SetMode.ADD)
    assert not pool.set(key, b"2", ttl=60, set_mode=SetMode.ADD)
    assert pool.set(key, b"2", ttl=60, set_mode=SetMode.APPEND)
    assert pool.set(key, b"0", ttl=60, set_mode=SetMode.PREPEND)
    assert pool.get(key) == b"012"
    assert pool.set(key, b"3", ttl=60, set_mode=SetMode.REPLACE)
    assert pool.get(key) == b"3"


def compare_and_swap(pool):
    key = Key("cas")
    pool.set(key, b"1", ttl=60)
    value, token = pool.get_cas(key)
    assert value == b"1" and token is not None
    assert pool.set(key, b"2", ttl=60, cas_token=token)
    assert not pool.set(key, b"3", ttl=60, cas_token=token)
    assert pool.get(key) == b"2"
    _, token = pool.get_cas(key)
    assert not pool.delete(key, cas_token=token + 1)
    assert pool.delete(key, cas_token=token)


def many_at_once(pool):
    keys = [Key(f"many:{n}") for n in range(200)]
    for key in keys[::2]:
        assert pool.set(key, key.key.encode(), ttl=60)
    found = pool.multi_get(keys)
    for n, key in enumerate(keys):
        assert found[key] == (key.key.encode() if n % 2 == 0 else None), key


def numbers(pool):
    key = Key("number")
    pool.delete(key)
    assert pool.delta(key, 5) is None or pool.delta(key, 5) is False
    assert pool.delta_initialize_and_get(key, delta=5, initial_value=40, initial_ttl=60) == 40
    assert pool.delta_and_get(key, 5) == 45
    assert pool.delta_and_get(key, -50) == 0
    assert pool.delta(key, 7)
    assert int(pool.get(key)) == 7


def times_to_live(pool):
    key = Key("ttl")
    assert pool.set(key, b"v", ttl=2)
    assert pool.touch(key, ttl=60)
    assert pool.set(Key("short"), b"v", ttl=1)
    time.sleep(2.1)
    assert pool.get(key) == b"v"
    assert pool.get(Key("short")) is None
    assert not pool.touch(Key("absent"), ttl=60)


def leases(pool):
    """On a miss one client wins the right to compute the value; the others are told to wait."""
    key = Key("lease")
    pool.delete(key)
    policy = LeasePolicy(ttl=30, miss_retries=2, miss_retry_wait=0.01)
    value, token = pool.get_or_lease_cas(key, policy)
    assert value is None and token is not None
    loser, _ = pool.get_or_lease_cas(key, policy)
    assert loser is None
    assert pool.set(key, b"computed", ttl=60, cas_token=token)
    assert pool.get_or_lease(key, policy) == b"computed"


def recaching_and_staleness(pool):
    key = Key("stale")
    assert pool.set(key, b"old", ttl=60)
    first = pool.get(key, recache_policy=RecachePolicy(ttl=100))
    assert first is None
    assert pool.get(key, recache_policy=RecachePolicy(ttl=100)) == b"old"
    assert pool.set(key, b"old", ttl=60)
    assert pool.invalidate(key, stale_policy=StalePolicy(mark_stale_on_deletion_ttl=30))
    first = pool.get(key)
    assert first is None, "the first reader of a stale value is to compute it anew"
    assert pool.get(key) == b"old", "later readers get the stale value"


def main():
    pool = client_for(sys.argv[1])
    checks = [
        sets_and_gets,
        keys_beyond_ascii_and_beyond_the_limit,
        modes,
        compare_and_swap,
        many_at_once,
        numbers,
        times_to_live,
        leases,
        recaching_and_staleness,
    ]
    for check in checks:
        check(pool)
        print(f"{check.__name__}: ok", flush=True)
    print(f"{len(checks)} passed, 0 failed")


main()
