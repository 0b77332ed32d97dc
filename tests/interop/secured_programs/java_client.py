"""Secured client of Java: as main.go of franz_go.

Arguments: java's shared library, jars (separated by os.pathsep), the access as JSON.
"""

import json
import os
import sys
import time
from typing import Any

import jpype
from jpype import JClass, JException

WITHIN_S = 30
PAUSE_S = 0.25
REFUSED = 3
REFUSALS = ("SaslAuthenticationException", "AuthorizationException", "SslAuthenticationException")

_COMMON = "org.apache.kafka.common"
_STRINGS = f"{_COMMON}.serialization.String"
_MODULES = {
    "PLAIN": f"{_COMMON}.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_COMMON}.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_COMMON}.security.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_COMMON}.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTHBEARER = f"{_COMMON}.security.oauthbearer"


def settings(access: dict[str, Any]) -> dict[str, str]:
    made = {
        "bootstrap.servers": access["bootstrap"],
        "security.protocol": access["protocol"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": access["authorities"],
    }
    if access["mechanism"]:
        made["sasl.mechanism"] = access["mechanism"]
        login = f"{_MODULES[access['mechanism']]} required"
        if not access["token"]:
            login += f' username="{access["user"]}" password="{access["password"]}"'
        made["sasl.jaas.config"] = f"{login};"
    if access["token"]:
        made["sasl.login.callback.handler.class"] = (
            f"{_OAUTHBEARER}.OAuthBearerLoginCallbackHandler"
        )
        # What the default one becomes in a client; that one needs a further jar to find it out.
        made["sasl.oauthbearer.jwt.validator.class"] = f"{_OAUTHBEARER}.ClientJwtValidator"
        made["sasl.oauthbearer.token.endpoint.url"] = access["token_url"]
    if access["certificate"]:
        made["ssl.keystore.type"] = "PEM"
        made["ssl.keystore.location"] = access["certificate"]
    return made


def main(access: dict[str, Any]) -> int:
    """How many messages it wrote and read."""
    common = settings(access)
    of_producer = {
        "key.serializer": f"{_STRINGS}Serializer",
        "value.serializer": f"{_STRINGS}Serializer",
        "delivery.timeout.ms": str(WITHIN_S * 1_000),
        "max.block.ms": str(WITHIN_S * 1_000),
        "linger.ms": "0",
        "request.timeout.ms": "20000",
    }
    of_consumer = {
        "key.deserializer": f"{_STRINGS}Deserializer",
        "value.deserializer": f"{_STRINGS}Deserializer",
        "group.id": access["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    clients = "org.apache.kafka.clients"
    producer = JClass(f"{clients}.producer.KafkaProducer")(properties({**common, **of_producer}))
    consumer = JClass(f"{clients}.consumer.KafkaConsumer")(properties({**common, **of_consumer}))
    consumer.subscribe(JClass("java.util.List").of(access["topic"]))
    ends_s = time.monotonic() + access["seconds"]
    count = 0
    while True:
        value = f"{access['group']} {count}" if count else access["group"]
        record = JClass(f"{clients}.producer.ProducerRecord")(access["topic"], value)
        producer.send(record).get()
        read_back(consumer, value)
        count += 1
        if time.monotonic() >= ends_s:
            break
        time.sleep(PAUSE_S)
    consumer.close()
    producer.close()
    return count


def read_back(consumer: Any, value: str) -> None:
    """Read until the value has come, and commit it."""
    within = JClass("java.time.Duration").ofMillis(500)
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        if any(str(record.value()) == value for record in consumer.poll(within)):
            consumer.commitSync()
            return
    raise TimeoutError(value)


def properties(values: dict[str, str]) -> Any:
    made = JClass("java.util.Properties")()
    for name, value in values.items():
        made.put(name, value)
    return made


def causes(error: Any) -> list[str]:
    """Of the error itself, then what it was caused by."""
    texts: list[str] = []
    while error is not None:
        texts.append(str(error.toString()))
        error = error.getCause()
    return texts


def run() -> int:
    access = json.loads(sys.argv[3])
    jpype.startJVM(
        sys.argv[1],
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx128m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        # The only tokens and keys that Kafka's classes may read.
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={access['token_url']}",
        classpath=sys.argv[2].split(os.pathsep),
    )
    try:
        print(main(access))
    except JException as error:
        texts = "\n".join(causes(error))
        print(texts, file=sys.stderr)
        return REFUSED if any(name in texts for name in REFUSALS) else 1
    return 0


if __name__ == "__main__":
    # A JVM ends with its daemon threads only; what is open is closed by the end of the process.
    code = run()
    sys.stdout.flush()
    os._exit(code)
