"""Admin client: how a command queries a running daemon, as JSON over HTTP from its admin port.

The only place in cli/ that opens a connection. Each error is one line for a person: no daemon
listens, the daemon refuses (`AdminRefused` with its message), or another program answered.
Each ends the command with exit code 2: the question was not answered.
"""

import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import click

from config.listeners import BadAddress, parse_host_port
from seams.operator_error import WrongInput

_TIMEOUT_S = 30.0
DEFAULT_ADMIN = "127.0.0.1:9180"
_TOKEN = "rollcall.admin.token"
"""In the context of a command."""

_TOKEN_FILE_BYTES_MAX = 65_536

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


Expected = Mapping[str, type | tuple[type, ...]]
"""What the answer has to have, to be one of Rollcall's: names and types."""


class AdminRefused(WrongInput):
    """The daemon knows of no such thing, does not know yet, or there is none."""


def admin_option(command: CommandFunction) -> CommandFunction:
    return click.option(
        "--admin",
        metavar="[https://]HOST:PORT",
        default=DEFAULT_ADMIN,
        envvar="ROLLCALL_ADMIN_LISTENER",
        show_default=True,
        show_envvar=True,
        help="The daemon's admin port. Credentials: --token-file, ROLLCALL_ADMIN_TOKEN or "
        "ROLLCALL_ADMIN_USERS, as the daemon takes them; SSL_CERT_FILE names the certificates to "
        "trust.",
    )(_token_file_option(command))


def _token_file_option(command: CommandFunction) -> CommandFunction:
    return click.option(
        "--token-file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        envvar="ROLLCALL_ADMIN_TOKEN_FILE",
        show_envvar=True,
        expose_value=False,
        callback=_remember_token,
        help="A file with a token of the admin port, in its first line.",
    )(command)


def _remember_token(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """For `ask_admin`, in the context of this command."""
    if path is not None and not context.resilient_parsing:
        context.meta[_TOKEN] = _token_in(path)


def _token_in(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_TOKEN_FILE_BYTES_MAX)
    except OSError as failed:
        raise WrongInput(f"--token-file: {path}: {failed.strerror or failed}") from None
    token = content.partition(b"\n")[0].strip()
    if not token or not token.isascii() or not token.decode().isprintable():
        raise WrongInput(f"--token-file: {path} has no token in its first line")
    return token.decode()


def ask_admin(
    admin: str, path: str, query: Mapping[str, str | int], expected: Expected
) -> dict[str, object]:
    """What the admin port answers to a GET. Raises AdminRefused, UsageError."""
    url = _url(admin, path, query)
    # No proxy: the environment's is meant for the web, and the daemon is close.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(Request(url, headers=_credentials()), timeout=_TIMEOUT_S) as answer:
            body = answer.read()
    except HTTPError as refused:
        raise AdminRefused(_words_of(refused, admin)) from None
    except ConnectionResetError:  # as from a Kafka port
        raise AdminRefused(_no_rollcall(admin, "it closes the connection")) from None
    except HTTPException:
        raise AdminRefused(_no_rollcall(admin, "it does not speak HTTP")) from None
    except OSError as failed:
        raise AdminRefused(f"no daemon answers at {admin}{_reason_of(failed)}") from None
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        raise AdminRefused(_no_rollcall(admin, "its answer is not JSON")) from None
    if not isinstance(content, dict) or not all(
        name in content and isinstance(content[name], kind) for name, kind in expected.items()
    ):
        raise AdminRefused(_no_rollcall(admin, f"its answer to {path} has other fields"))
    return content


def _credentials() -> dict[str, str]:
    """The token file, or the daemon's own variables; of several tokens or users the first."""
    context = click.get_current_context(silent=True)
    if context is not None and _TOKEN in context.meta:
        return {"Authorization": f"Bearer {context.meta[_TOKEN]}"}
    token, users = (
        os.environ.get(name, "").replace("\n", ",").split(",")[0].strip()
        for name in ("ROLLCALL_ADMIN_TOKEN", "ROLLCALL_ADMIN_USERS")
    )
    if not f"{token}{users}".isprintable():
        raise click.UsageError("ROLLCALL_ADMIN_TOKEN or ROLLCALL_ADMIN_USERS is not printable")
    if token:
        return {"Authorization": f"Bearer {token}"} if token.isascii() else {}
    if users:
        return {"Authorization": f"Basic {b64encode(users.encode()).decode()}"}
    return {}


def _url(admin: str, path: str, query: Mapping[str, str | int]) -> str:
    is_tls = admin.startswith("https://")
    try:
        host, port = parse_host_port(admin.removeprefix("https://"))
    except BadAddress as fault:
        raise click.UsageError(f"--admin: {fault}") from None
    for name, text in query.items():
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{name} {text!r} is not UTF-8") from None
    host = host or "127.0.0.1"
    scheme = "https" if is_tls else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}?{urlencode(query)}"


def _reason_of(failed: OSError) -> str:
    """What is wrong, or what to do: most often it does not run, or has another admin port."""
    reason: object = getattr(failed, "reason", failed)
    if isinstance(reason, ConnectionRefusedError):
        return ": start it (`rollcall serve`), or give its admin port (--admin)"
    words = reason.strerror if isinstance(reason, OSError) else None
    return f": {words or reason}"


def _no_rollcall(admin: str, why: str) -> str:
    remedy = "give the admin port of the daemon with --admin HOST:PORT"
    return f"the program at {admin} is not Rollcall ({why}): {remedy}"


def _words_of(refused: HTTPError, admin: str) -> str:
    """A refusal of Rollcall's is an object with `error` alone (console/answers.py)."""
    try:
        content: object = json.load(refused)
    except (ValueError, OSError, HTTPException):
        content = None
    if isinstance(content, dict) and content.keys() == {"error"}:
        return str(content["error"])
    if refused.code == 401:
        return f"the admin port at {admin} asks for credentials: give --token-file FILE"
    if refused.headers.get("Server") == "rollcall":
        return f"the admin port at {admin} answers {refused.code} {refused.reason}"
    return _no_rollcall(admin, f"it answers {refused.code} {refused.reason}")
