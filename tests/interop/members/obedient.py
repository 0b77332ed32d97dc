"""Commanded member: a process that carries out one command per line, and nothing in between.

Arguments: library, options as JSON (client.py). A line of stdin is [word, arguments...]; each gets
one line back: what it yielded, or the name of the error.
"""

import json
import sys

from _say import say

from client import Offsets, Options, open_client


class SayingListener:
    def assigned(self, partitions: list[int]) -> Offsets:
        say("assigned", partitions=partitions)
        return {}

    def revoked(self, partitions: list[int]) -> None:
        say("revoked", partitions=partitions)


def main(library: str, options: Options) -> None:
    client = open_client(library, options)
    for line in sys.stdin:
        word, *arguments = json.loads(line)
        if word == "subscribe":
            arguments = [SayingListener()]
        elif word == "commit_async":
            arguments.append(lambda error: say("async commit", error=error))
        if word in ("commit", "commit_async") and arguments[0] is not None:
            # The keys of a JSON object are strings.
            arguments[0] = {int(partition): offset for partition, offset in arguments[0].items()}
        try:
            value = getattr(client, word)(*arguments)
        except Exception as error:
            say("failed", error=f"{type(error).__name__}: {error}")
        else:
            say("done", value=value)


main(sys.argv[1], Options.from_json(sys.argv[2]))
