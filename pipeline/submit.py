"""The jobs for spark-submit: the session is the one that it started.

`rollcall pipeline archive DIR` writes this script and rollcall.zip, which has what it imports.

    spark-submit --master k8s://... --py-files rollcall.zip submit.py JOB --from ... --to ...
    spark-submit --packages ... submit.py stream --from kafka://HOST:PORT --to ...

It takes the options of `rollcall pipeline run` and `rollcall pipeline stream`, with times as ms
since the epoch, and has their exit codes. Spark's own options belong to spark-submit.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pipeline.command import Order, UnknownJob, carry_out
from pipeline.stream.health_stream import StreamOrder, follow
from seams.operator_error import OperatorError

STREAM: Final = "stream"


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 refused, 2 usage (argparse's own)."""
    parser = _parser()
    given = parser.parse_args(words)
    try:
        if given.job == STREAM:
            if follow(_stream_order(given), None, {}):
                print("stopped: the next start continues from here", file=sys.stderr)
        else:
            for line in carry_out(_order(given)):
                print(line, flush=True)
    except UnknownJob as unknown:
        parser.error(f"{unknown}, and {STREAM}")
    except OperatorError as error:
        print(f"rollcall-pipeline: {error}", file=sys.stderr)
        return error.exit_code  # as `rollcall pipeline`
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rollcall-pipeline", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("job", help=f"a job, `all`, `ingest` or `{STREAM}`")
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="out", required=True)
    parser.add_argument("--option", type=_pair, action="append", default=[], metavar="KEY=VALUE")
    jobs = parser.add_argument_group("jobs")
    jobs.add_argument("--since-ms", type=int, default=0)
    jobs.add_argument("--until-ms", type=int, default=round(datetime.now(UTC).timestamp() * 1000))
    jobs.add_argument("--version-pattern")
    jobs.add_argument("--report", metavar="FILE")
    jobs.add_argument("--acknowledge", metavar="HOST:PORT", help="of ingest")
    jobs.add_argument("--as", dest="cluster", metavar="NAME", help="of several in a lake")
    jobs.add_argument("--strict", action="store_true", help="exit code 1 if there was damage")
    stream = parser.add_argument_group(STREAM)
    stream.add_argument("--verdicts-topic")
    stream.add_argument("--every-s", type=int, default=30, help="a batch so often")
    stream.add_argument("--once", action="store_true", help="what is new, then end")
    return parser


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{word!r}: expected KEY=VALUE")
    return key, value


def _order(given: argparse.Namespace) -> Order:
    return Order(
        given.job,
        given.source,
        given.out,
        given.since_ms,
        given.until_ms,
        connector=dict(given.option),
        version_pattern=given.version_pattern,
        report=given.report,
        acknowledge=given.acknowledge,
        cluster=given.cluster,
        strict=given.strict,
    )


def _stream_order(given: argparse.Namespace) -> StreamOrder:
    return StreamOrder(
        given.source,
        given.out,
        given.verdicts_topic,
        None if given.once else given.every_s,
        dict(given.option),
    )


if __name__ == "__main__":
    sys.exit(main())
