"""Broker connection: one blocking connection to a broker, request by request.

It speaks TLS and SASL as the client properties say, and each request in the newest version that
both sides know. Later versions that name topics by their ids are not used: see `BY_NAME`.
"""

import socket
import ssl
import struct
from typing import Final

from client.errors import BadRequest, ClusterFault
from client.login import log_in
from client.properties import ClientProperties
from client.wire import BrokenWire, ClientWire, NoAnswer, NotKafka, R, WireClosed
from protocol.messages import Request
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.names import ApiKey, ErrorCode
from protocol.primitives import Unwritable

SHOWN_MAX: Final = 80
"""Characters of a wrong address, in a message of one line."""

BY_NAME: Final = {ApiKey.OFFSET_FETCH: 9, ApiKey.OFFSET_COMMIT: 9, ApiKey.DELETE_TOPICS: 5}
"""Later versions name topics by their ids."""


class BrokerConnection:
    """One broker. Every method raises ClusterFault; then the connection is of no more use."""

    def __init__(self, host: str, port: int, properties: ClientProperties) -> None:
        self.name = f"{host}:{port}"
        self._properties = properties
        self._versions: dict[int, tuple[int, int]] = {}
        connected = self._connect(host, port)
        self._wire = ClientWire(connected, properties.client_id, properties.timeout_s)
        offered = self._ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self._versions = {
            api.api_key: (api.min_version, api.max_version) for api in offered.api_keys
        }
        if properties.login is not None:
            self._authenticate(properties.login.mechanism)

    def close(self) -> None:
        self._wire.close()

    def ask(self, request: Request, answer: type[R]) -> R:
        return self._ask(request, answer, self.version_of(request))

    def serves(self, api_key: ApiKey) -> bool:
        return api_key in self._versions

    def version_of(self, request: Request) -> int:
        """The newest version that both sides speak."""
        api_key = request.API_KEY
        if api_key not in self._versions:
            raise ClusterFault(f"{self.name} does not serve {api_key.name}")
        low, high = self._versions[api_key]
        ours = request.VERSIONS
        version = min(high, ours[-1], BY_NAME.get(api_key, ours[-1]))
        if version < max(low, ours[0]):
            raise ClusterFault(f"{self.name} serves {api_key.name} v{low} to v{high} only")
        return version

    def _connect(self, host: str, port: int) -> socket.socket:
        tls, timeout_s = self._properties.tls, self._properties.timeout_s
        try:
            connected = socket.create_connection((host, port), timeout=timeout_s)
        except (OSError, UnicodeError, OverflowError) as fault:  # a host or port that is none
            reason = fault.strerror if isinstance(fault, OSError) else None
            raise ClusterFault(f"{self.name[:SHOWN_MAX]}: {reason or fault}") from None
        if tls is None:
            return connected
        try:
            return tls.wrap_socket(connected, server_hostname=host)
        except (OSError, ValueError) as fault:
            connected.close()
            reason = getattr(fault, "verify_message", None) or getattr(fault, "reason", None)
            if isinstance(fault, TimeoutError):
                reason = f"no answer within {timeout_s:g} s"
            hint = ""
            if isinstance(fault, ssl.SSLCertVerificationError):
                hint = ": name its certificate with ssl.truststore.location"
            raise ClusterFault(f"{self.name}: TLS: {reason or fault}{hint}") from None

    def _authenticate(self, mechanism: str) -> None:
        login = self._properties.login
        assert login is not None
        shaken = self._ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, 1)
        if shaken.error_code is not ErrorCode.NONE:
            served = ", ".join(shaken.mechanisms) or "none"
            raise ClusterFault(f"{self.name} does not serve {mechanism}, but {served}")

        def exchange(message: bytes) -> bytes:
            answer = self._ask(SaslAuthenticateRequest(message), SaslAuthenticateResponse, 1)
            if answer.error_code is not ErrorCode.NONE:
                reason = answer.error_message or answer.error_code.name
                raise ClusterFault(f"{self.name}: {reason}")
            return answer.auth_bytes

        log_in(login, exchange)

    def _ask(self, request: Request, answer: type[R], version: int) -> R:
        api = request.API_KEY.name
        try:
            return self._wire.ask(request, answer, version)
        except (Unwritable, UnicodeError, struct.error) as fault:
            raise BadRequest(f"{api} cannot be written: {fault}") from None
        except WireClosed:
            raise ClusterFault(f"{self.name} closed the connection{self._hint()}") from None
        except NotKafka:
            said = f"{self.name} does not speak Kafka's protocol{self._hint()}"
            raise ClusterFault(said) from None
        except NoAnswer:
            waited = f"{self._properties.timeout_s:g} s"
            raise ClusterFault(f"{self.name} does not answer {api} within {waited}") from None
        except BrokenWire as fault:
            raise ClusterFault(f"{self.name}: {api}: {fault}") from None

    def _hint(self) -> str:
        """Most often a listener wants TLS or SASL, and got neither."""
        if self._versions or self._properties.tls is not None:
            return ""
        return ": if its listener has TLS, give security.protocol with --command-config FILE"
