"""SCRAM store: the SCRAM credentials of users, and the file that has them.

The file has salted hashes, never a password, and only its owner may read it. It is written as a
whole before a change takes effect: a change that was answered survives a crash. A change is an
operation of the admin queue: it yields its disk work. Listeners ask for the credential of a user
at each authentication: a deleted user stays connected until it has to authenticate again.
Kafka's counterparts: `ScramControlManager` and `ScramImage` for the table, `CredentialCache` for
asking.
"""

from collections.abc import Callable, Mapping
from typing import Final

from security.sasl.scram_credential import (
    SCRAM_HASHES,
    CredentialShapes,
    ScramCredential,
    format_credential,
    made_up_credential,
    parse_credential,
)
from storage.api import Corrupt
from topics.admin_queue import Steps
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, dump_checked
from topics.events import SaveFailed, ScramCredentialsChanged, ScramCredentialsLost, TopicEvent
from topics.stored_document import StoredDocument

SCRAM_FORMAT: Final = 1

SCRAM_USERS_MAX: Final = 10_000
"""Users with credentials. The file is written as a whole: that many make about 3 MB."""

OfUser = Mapping[str, ScramCredential]
"""The credentials of one user, by mechanism."""


class ScramCredentialsDamaged(Corrupt):
    """Without the file, no user could log in."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as *.damaged: "
        "the users must then be added again, see docs/sasl.md"
    )


class ScramStore:
    """A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        file: CatalogFile,
        observe: Callable[[TopicEvent], None],
        new_secret: Callable[[], bytes],
        *,
        repair: bool = False,
    ) -> None:
        """Reads the file. With `repair` a damaged one is kept as a copy; then there are no users.

        `new_secret` gives random bytes. Raises Corrupt, NewerFormat, OSError.
        """
        self.was_repaired = False
        self._file = file
        self._observe = observe
        self._users: dict[str, OfUser] = {}
        self._shapes: dict[str, CredentialShapes] = {}
        self._secret = new_secret()  # of the salts of users who do not exist
        self._load(repair=repair)
        self._find_shapes()

    # Queries

    @property
    def users(self) -> Mapping[str, OfUser]:
        """All that have a credential."""
        return self._users

    def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return self._users.get(user, {}).get(mechanism)

    def made_up(self, mechanism: str, user: str) -> ScramCredential:
        """For a user who does not exist; the same at each attempt, also after a restart.

        It looks like those that there are: another number of iterations would show who is known.
        """
        return made_up_credential(mechanism, user, self._secret, self._shapes[mechanism])

    def _find_shapes(self) -> None:
        for mechanism in SCRAM_HASHES:
            of_all = (of_user.get(mechanism) for of_user in self._users.values())
            self._shapes[mechanism] = CredentialShapes(each for each in of_all if each is not None)

    # Changes

    def change(self, changes: Mapping[tuple[str, str], ScramCredential | None]) -> Steps[None]:
        """By (user, mechanism): a new credential, or None to remove the one that is there."""
        after = dict(self._users)
        for (user, mechanism), credential in changes.items():
            of_user = dict(after.pop(user, {}))
            if credential is None:
                of_user.pop(mechanism, None)
            else:
                of_user[mechanism] = credential
            if of_user:
                after[user] = of_user
        if after == self._users:
            return
        content = self._dump(after)
        try:
            yield lambda: self._file.save(content)
        except OSError as fault:
            self._observe(SaveFailed("SCRAM credentials", str(fault)))
            raise
        self._users = after
        self._find_shapes()
        for (user, mechanism), credential in changes.items():
            iterations = None if credential is None else credential.iterations
            self._observe(ScramCredentialsChanged(user, mechanism, iterations))

    # The file

    def _dump(self, users: Mapping[str, OfUser]) -> bytes:
        texts = {
            user: {mechanism: format_credential(each) for mechanism, each in of_user.items()}
            for user, of_user in users.items()
        }
        document = {"users": texts, "secret_of_salts": self._secret.hex()}
        return dump_checked(document, SCRAM_FORMAT)

    def _load(self, *, repair: bool) -> None:
        if repair:
            found, self.was_repaired = _SCRAM_FILE.load_or_repair(
                self._file,
                self._dump({}),
                lambda kept_as: self._observe(ScramCredentialsLost(kept_as)),
            )
        else:
            found = _SCRAM_FILE.load(self._file)
        if found is not None:
            self._users, self._secret = found


def _content(document: JsonDocument) -> tuple[dict[str, OfUser], bytes]:
    """Raises ValueError and others of `StoredDocument`."""
    users = {user: _of_user(texts) for user, texts in document["users"].items()}
    return users, bytes.fromhex(document["secret_of_salts"])


def _of_user(texts: Mapping[str, str]) -> OfUser:
    """Raises ValueError and others of `StoredDocument`."""
    of_user = {mechanism: parse_credential(mechanism, text) for mechanism, text in texts.items()}
    if not of_user or not of_user.keys() <= SCRAM_HASHES.keys():
        raise ValueError("a user has no credential")
    return of_user


_SCRAM_FILE: Final = StoredDocument(SCRAM_FORMAT, _content, ScramCredentialsDamaged, is_secret=True)
