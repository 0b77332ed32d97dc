"""How does a member process tell the test what it saw? One JSON object a line on stdout."""

import json
import signal
import sys
import threading

stopping = threading.Event()


def say(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def stop_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
