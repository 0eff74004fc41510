"""The suite that clients in all languages pass."""

import json
import pathlib

import pytest

import gestalt

STEPS = pathlib.Path(__file__).parents[3] / "crates/gestalt/conformance/steps.json"


def outcome(client, step):
    """What a step came to, in the words of the suite."""
    op, key = step["op"], step["key"]
    value = b"x" * step["fill"] if "fill" in step else step.get("value", "")
    if op == "get" and "range" in step:
        offset, length = step["range"]
        part = client.get(key, offset=offset, length=length)
        item = part is not None and gestalt.Item(part, 0, client.stat(key).flags, None, 0)
    elif op == "get":
        item = client.get_item(key)
    if op == "get":
        if not item:
            return {"miss": True}
        if len(item.value) > 1000:
            assert item.value == b"x" * len(item.value)
            return {"fill": len(item.value)}
        return {"value": item.value.decode(), "flags": item.flags}
    if op in ("add", "replace", "append", "prepend"):
        return {"stored": getattr(client, op)(key, value) is not None}
    if op == "set":
        return {"stored": client.set(key, value, flags=step.get("flags", 0)) > 0}
    if op == "cas":
        version = step["version"]
        version = client.stat(key).version if version == "current" else version
        return {"stored": client.cas(key, value, version) is not None}
    if op == "add_number":
        number = client.incr(key, step["delta"])
        return {"miss": True} if number is None else {"number": number}
    if op == "touch":
        return {"found": client.touch(key, step["ttl"])}
    if op == "scan":
        return {"keys": sorted(set(scanned.decode() for scanned in client.scan(key)))}
    assert op == "delete"
    return {"found": client.delete(key)}


def test_the_conformance_suite_passes(client):
    steps = json.loads(STEPS.read_text())
    assert len(steps) > 30
    # It begins with none of its keys.
    for key in {step["key"] for step in steps} - {""}:
        client.delete(key)
    for step in steps:
        expected = step["expect"]
        name = expected.get("code") or expected.get("error")
        if name is None:
            assert outcome(client, step) == expected, step
        else:
            with pytest.raises(gestalt.GestaltError) as raised:
                outcome(client, step)
            assert raised.value.name == name, step
