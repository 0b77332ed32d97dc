"""How does a command ask a running daemon? JSON over HTTP, from its admin port.

The one place in cli/ that opens a connection. What goes wrong is one line for a person: nobody
listens, the daemon refuses (`AdminRefused` with its words), or it is no Rollcall that answered.
Each ends the command with exit code 2: nothing was found out.
"""

import json
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import click

from broker.config_key import BadValue
from broker.listeners import parse_host_port
from cli.exits import WrongInput

TIMEOUT_S = 30.0
DEFAULT_ADMIN = "127.0.0.1:9180"

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


class AdminRefused(WrongInput):
    """The daemon knows of no such thing, does not know yet, or there is none."""


def admin_option(command: CommandFunction) -> CommandFunction:
    return click.option(
        "--admin",
        metavar="HOST:PORT",
        default=DEFAULT_ADMIN,
        envvar="ROLLCALL_ADMIN_LISTENER",
        show_default=True,
        show_envvar=True,
        help="The daemon's admin port.",
    )(command)


def ask_admin(admin: str, path: str, query: Mapping[str, str | int]) -> dict[str, object]:
    """What the admin port answers to a GET. Raises AdminRefused, UsageError."""
    try:
        host, port = parse_host_port(admin)
    except BadValue as fault:
        raise click.UsageError(f"--admin: {fault}") from None
    host = host or "127.0.0.1"
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}?{urlencode(query)}"
    # No proxy: the environment's is meant for the web, and the daemon is close.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as answer:
            content: object = json.load(answer)
    except HTTPError as refused:
        raise AdminRefused(_words_of(refused)) from None
    except (OSError, HTTPException) as failed:
        raise AdminRefused(f"no daemon answers at {admin}{_reason_of(failed)}") from None
    except ValueError:
        raise AdminRefused(f"what answers at {admin} is no Rollcall") from None
    if not isinstance(content, dict):
        raise AdminRefused(f"what answers at {admin} is no Rollcall")
    return content


def _reason_of(failed: OSError | HTTPException) -> str:
    """What is wrong, or what to do: most often it does not run, or has another admin port."""
    reason: object = getattr(failed, "reason", failed)
    if isinstance(reason, ConnectionRefusedError):
        return ": start it (`rollcall serve`), or give the admin port that it printed (--admin)"
    words = reason.strerror if isinstance(reason, OSError) else None
    return f": {words or reason}"


def _words_of(refused: HTTPError) -> str:
    try:
        content: object = json.load(refused)
    except ValueError:
        content = None
    if isinstance(content, dict) and isinstance(content.get("error"), str):
        return str(content["error"])
    return f"the admin port answers {refused.code} {refused.reason}"
