"""10,000 requests in flight while nodes are lost. Argument: the URI of a cluster. Says "running" once all keys are stored, goes on until its
standard input ends, and checks of each request that it ends within its deadline, of each value that it is the key's, and of each number that
what was acknowledged was counted once, and nothing twice.
"""

import asyncio
import collections
import sys
import time

import gestalt

IN_FLIGHT, DEADLINE, SLACK = 10_000, 20.0, 5.0


class Key:
    """One key of numbers and one of texts, of which one thing is asked after the other."""

    def __init__(self, client, number, tally):
        self.client, self.number, self.tally = client, number, tally
        self.done = self.unknown = self.last = 0
        self.texts = {0}

    async def begin(self):
        await self.client.iset(f"number-{self.number}", "0")
        await self.client.iset(f"text-{self.number}", f"{self.number}:0")

    async def ask(self, ends):
        turn = 0
        while not ends.is_set():
            turn += 1
            begun = time.monotonic()
            try:
                await (self.count, self.write, self.look)[turn % 3](turn)
                self.tally["Ok"] += 1
            except gestalt.GestaltError as failure:
                self.tally[failure.name] += 1
            took = time.monotonic() - begun
            assert took < DEADLINE + SLACK, f"a request took {took} s"

    async def count(self, _):
        try:
            number = await self.client.iincr(f"number-{self.number}")
        except gestalt.GestaltError as failure:
            self.unknown += not failure.changed_nothing
            raise
        self.done += 1
        self.check(number)

    def check(self, number):
        assert self.done <= number <= self.done + self.unknown and number >= self.last, (number, vars(self))
        self.last = number

    async def write(self, turn):
        try:
            await self.client.iset(f"text-{self.number}", f"{self.number}:{turn}")
        except gestalt.GestaltError as failure:
            if not failure.changed_nothing:
                self.texts.add(turn)
            raise
        self.texts = {turn}

    async def look(self, _=0):
        whose, turn = (await self.client.iget(f"text-{self.number}")).split(b":")
        # What was given up may still come.
        assert int(whose) == self.number and int(turn) in self.texts, (whose, turn, vars(self))


async def main(uri):
    tally, ends = collections.Counter(), asyncio.Event()
    with gestalt.connect(uri, timeout=DEADLINE) as client:
        keys = [Key(client, number, tally) for number in range(IN_FLIGHT)]
        await asyncio.gather(*[key.begin() for key in keys])
        tasks = [asyncio.ensure_future(key.ask(ends)) for key in keys]
        print("running", flush=True)
        asyncio.get_running_loop().run_in_executor(None, sys.stdin.read).add_done_callback(lambda _: ends.set())
        await asyncio.gather(*tasks)
        for key in keys:
            await key.look()
            key.check(int(await client.iget(f"number-{key.number}")))
    for name, count in tally.items():
        print(name, count)


asyncio.run(main(sys.argv[1]))
