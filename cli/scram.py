"""`rollcall scram`: SCRAM users of a data directory on which no daemon runs.

For the first user: who cannot log in yet cannot ask the daemon for one. Afterwards kafka-configs
does it while the daemon runs. A password is read from a prompt, a file or the environment, never
from the command line, which other users of the machine can see.
Kafka's counterpart: `kafka-storage format --add-scram`, which has passwords in its arguments.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cli.groups import Commands
from cli.options import config_file_option
from cli.read_options import read_options
from config.keys import Config
from seams.operator_error import OperationFailed, WrongInput
from security.sasl.scram_credential import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    scram_credential,
)

if TYPE_CHECKING:
    from topics.scram_store import ScramStore

_PASSWORD_MAX_BYTES = 65_536  # of a file; a larger one was named by mistake

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., object])

_LOCATION = (
    click.option(
        "--data-dir",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="The data directory.  [default: ./rollcall-data]",
    ),
    config_file_option(),
)
_mechanism = click.option(
    "--mechanism",
    type=click.Choice([SCRAM_SHA_256, SCRAM_SHA_512], case_sensitive=False),
    default=SCRAM_SHA_512,
    show_default=True,
    help="A user may have a password for each.",
)


def _location(command: AnyCommand) -> AnyCommand:
    for option in reversed(_LOCATION):
        command = option(command)
    return command


@click.group(cls=Commands)
def scram() -> None:
    """Users of SCRAM, while no daemon runs on the data directory.

    The commands take the lock of the directory, and refuse if it is held.
    """


@scram.command(
    name="add",
    epilog="\b\nExamples:\n"
    "  rollcall scram add admin --data-dir rollcall-data\n"
    "  rollcall scram add admin --password-file /run/secrets/admin\n",
)
@click.argument("user")
@_location
@_mechanism
@click.option(
    "--iterations",
    type=click.IntRange(ITERATIONS_MIN, ITERATIONS_MAX),
    default=ITERATIONS_MIN,
    show_default=True,
    help="How often the password is hashed.",
)
@click.option(
    "--password-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file with the password; a newline at its end is no part of it.",
)
@click.option("--password-env", metavar="NAME", help="An environment variable with the password.")
def add_user(
    *,
    user: str,
    data_dir: str | None,
    config_file: Path | None,
    mechanism: str,
    iterations: int,
    password_file: Path | None,
    password_env: str | None,
) -> int:
    """Add USER, or give it a new password. Without an option the password is asked for."""
    from broker.loop.ids import new_scram_nonce
    from topics.admin_queue import run_now
    from topics.handlers.user_scram_credentials import USER_NAME_MAX
    from topics.scram_store import SCRAM_USERS_MAX

    if not user or len(user) > USER_NAME_MAX:
        raise WrongInput(f"a user name has 1 to {USER_NAME_MAX} characters")
    if not user.isascii() or not user.isprintable():
        raise WrongInput("a user of SCRAM has a name of printable ASCII characters, as with Kafka")
    config = read_options(data_dir=data_dir, config_file=config_file)
    password = _password(password_file, password_env)
    credential = scram_credential(mechanism, password, new_scram_nonce().encode(), iterations)
    with _opened(config, must_exist=False) as store:
        if user not in store.users and len(store.users) >= SCRAM_USERS_MAX:
            raise OperationFailed(f"there are {SCRAM_USERS_MAX} users already")
        was_there = store.credential(mechanism, user) is not None
        run_now(store.change({(user, mechanism): credential}))
    did = "changed the password of" if was_there else "added"
    click.echo(f"{did} {user} ({mechanism}, {iterations} iterations) in {config.data_dir}")
    return 0


@scram.command(name="list")
@_location
def list_users(*, data_dir: str | None, config_file: Path | None) -> int:
    """List the users with their mechanisms."""
    with _opened(
        read_options(data_dir=data_dir, config_file=config_file), must_exist=True
    ) as store:
        for user, of_user in sorted(store.users.items()):
            for mechanism, credential in sorted(of_user.items()):
                click.echo(f"{user}  {mechanism}  {credential.iterations} iterations")
    return 0


@scram.command(name="remove")
@click.argument("user")
@_location
@click.option(
    "--mechanism",
    type=click.Choice([SCRAM_SHA_256, SCRAM_SHA_512], case_sensitive=False),
    help="Only the password for this one.  [default: all]",
)
def remove_user(
    *, user: str, data_dir: str | None, config_file: Path | None, mechanism: str | None
) -> int:
    """Remove USER."""
    from topics.admin_queue import run_now

    config = read_options(data_dir=data_dir, config_file=config_file)
    with _opened(config, must_exist=True) as store:
        present = store.users.get(user, {})
        removed = [each for each in present if mechanism in (None, each)]
        if not removed:
            raise WrongInput(
                f"{config.data_dir} has no such user of {mechanism or 'SCRAM'}: {user}"
            )
        run_now(store.change({(user, each): None for each in removed}))
    click.echo(f"removed {user} ({', '.join(sorted(removed))}) from {config.data_dir}")
    return 0


@contextmanager
def _opened(config: Config, *, must_exist: bool) -> Iterator["ScramStore"]:
    """Of a locked directory. Raises DataDirRefused, Corrupt, OSError."""
    from broker.loop.ids import new_secret
    from storage.data_dir import META_PROPERTIES
    from storage.disk import RealDisk
    from storage.open import scram_file
    from topics.scram_store import ScramStore
    from transfer.file_owner import give_to_owner
    from transfer.rollcall_dir import lock

    path = str(config.data_dir)
    if must_exist and not Path(path, META_PROPERTIES).exists():
        raise WrongInput(f"{path} is not a Rollcall data directory")
    directory = lock(config)
    try:
        yield ScramStore(scram_file(RealDisk(), path), lambda _: None, new_secret)
        give_to_owner(path)
    finally:
        directory.close()


def _password(file: Path | None, variable: str | None) -> str:
    if file is not None and variable is not None:
        raise WrongInput("--password-file and --password-env say the same: give one of them")
    if file is not None:
        password = _of_file(file)
    elif variable is not None:
        if variable not in os.environ:
            raise WrongInput(f"there is no environment variable {variable}")
        password = os.environ[variable]
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if not password:
        raise WrongInput("the password is empty")
    return password


def _of_file(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(_PASSWORD_MAX_BYTES + 1)
    if len(content) > _PASSWORD_MAX_BYTES:
        raise WrongInput(f"{file} is larger than a password")
    try:
        return content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise WrongInput(f"{file} is not UTF-8") from None
