"""Interventions: requests of a test's daemon that are held back, or answered with an error.

One interceptor per API does both (broker/net/dispatch.py). A request that is to fail fails, also
while its API is held; others wait in the order in which they came, until the last hold of their API
ends. Then those whose client is still there are handled, as if they had come just then.
"""

from collections import deque
from difflib import get_close_matches
from functools import partial

from broker.daemon import Daemon
from broker.net.dispatch import Drop, Intercept, Respond
from broker.net.request import PendingRequest
from protocol.messages import Request
from protocol.names import ApiKey, ErrorCode
from seams.reply_token import ReplyToken
from testing.error_responses import error_response
from testing.refusal import bad_value


class _Intervention:
    """What happens to the requests of one API."""

    def __init__(self) -> None:
        self.errors: deque[ErrorCode] = deque()
        self.holds: set[int] = set()
        self.held: list[tuple[Request, PendingRequest]] = []


class Interventions:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._of: dict[ApiKey, _Intervention] = {}
        self._holds: dict[int, ApiKey] = {}
        self._last_hold = 0

    def fail_next(self, api_name: str, error_name: str, times: int) -> None:
        """The next `times` requests of the API get this error and reach no handler."""
        api_key, error_code = self._api(api_name), _error(error_name)
        if times < 1:
            raise bad_value(f"fail_next: times is {times}, and must be at least 1")
        self._intervention(api_key).errors.extend([error_code] * times)

    def hold(self, api_name: str) -> int:
        """From now on requests of the API wait; the number of this hold."""
        api_key = self._api(api_name)
        self._last_hold += 1
        self._holds[self._last_hold] = api_key
        self._intervention(api_key).holds.add(self._last_hold)
        return self._last_hold

    def held(self, hold: int) -> int:
        """How many requests wait whose clients are still there."""
        return sum(_is_there(token) for _, token in self._of[self._holds[hold]].held)

    def release(self, hold: int) -> None:
        """End a hold; the last one of an API lets its requests go on."""
        api_key = self._holds.pop(hold)
        intervention = self._of[api_key]
        intervention.holds.discard(hold)
        if intervention.holds:
            return
        waiting, intervention.held = intervention.held, []
        handler, clock = self._daemon.dispatcher.handler_of(api_key), self._daemon.clock
        for request, token in waiting:
            if not _is_there(token):
                continue
            try:
                handler(request, token, clock.now())
            except Exception as failure:  # noqa: BLE001 - of this request, as on a connection
                self._daemon.server.failed(token, failure)
        self._end_if_idle(api_key)
        self._daemon.ticker.arm()

    def _intervention(self, api_key: ApiKey) -> _Intervention:
        found = self._of.get(api_key)
        if found is None:
            found = self._of[api_key] = _Intervention()
            self._daemon.dispatcher.intercept(api_key, partial(self._intercept, api_key))
        return found

    def _intercept(self, api_key: ApiKey, request: Request, token: ReplyToken) -> Intercept:
        intervention = self._of[api_key]
        if intervention.errors:
            answer = error_response(request, token.api_version, intervention.errors[0])
            intervention.errors.popleft()
            self._end_if_idle(api_key)
            return Drop() if answer is None else Respond(answer)
        if intervention.holds:
            assert isinstance(token, PendingRequest)
            intervention.held.append((request, token))
            return Drop()
        return None

    def _end_if_idle(self, api_key: ApiKey) -> None:
        """Requests cost no more than before once nothing is left to do with them."""
        intervention = self._of.get(api_key)
        if intervention is not None and not intervention.errors and not intervention.holds:
            del self._of[api_key]
            self._daemon.dispatcher.intercept(api_key, None)

    def _api(self, name: str) -> ApiKey:
        served = {_camel(api_key): api_key for api_key in self._daemon.dispatcher.routes}
        if name not in served:
            raise bad_value(f"there is no API {name}{_nearest(name, list(served))}")
        return served[name]


def _error(name: str) -> ErrorCode:
    names = [error_code.name for error_code in ErrorCode]
    if name not in names:
        raise bad_value(f"Kafka has no error {name}{_nearest(name, names)}")
    if name == ErrorCode.NONE.name:
        raise bad_value("NONE is no error")
    return ErrorCode[name]


def _nearest(name: str, names: list[str]) -> str:
    by_fold = {each.casefold(): each for each in names}
    found = get_close_matches(name.casefold(), list(by_fold), 1)
    return f"; did you mean {by_fold[found[0]]}?" if found else ""


def _camel(api_key: ApiKey) -> str:
    """As Kafka spells it: OffsetCommit."""
    return api_key.name.title().replace("_", "")


def _is_there(token: PendingRequest) -> bool:
    """Whether its client still waits for the answer."""
    connection = token.connection
    return token.answer is None and not connection.lost and not connection.closing
