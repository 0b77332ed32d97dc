"""SASL requests: refused, as on a listener of Kafka's without SASL.

A client that is told to use SASL learns here that this listener has none. Kafka's counterparts:
`KafkaApis.handleSaslHandshakeRequest`, `handleSaslAuthenticateRequest`.
"""

from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.names import ErrorCode


def answer_sasl_handshake(_request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def answer_sasl_authenticate(_request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    )
