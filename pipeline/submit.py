"""The jobs for spark-submit: the session is the one that it started.

`rollcall pipeline archive DIR` writes this script and rollcall.zip, which has what it imports.

    spark-submit --master k8s://... --py-files rollcall.zip submit.py JOB --from ... --to ...
    spark-submit --packages ... submit.py stream --from kafka://HOST:PORT --to ...
    spark-submit --master ... submit.py compact --from LAKE
    spark-submit --master ... submit.py expire --from LAKE --before-ms MS

It takes the options of `rollcall pipeline run` and `rollcall pipeline stream`, with times as ms
since the epoch, and has their exit codes. `compact` and `expire` are those of `rollcall pipeline
lake`, in the driver. Spark's own options belong to spark-submit.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from pipeline.command import Order, UnknownJob, carry_out
from pipeline.lake_maintenance import compact_lake, compacted_text, expire_lake, expired_text
from pipeline.progress import Progress, epoch_ms
from pipeline.stream.health_stream import StreamOrder, follow
from seams.operator_error import OperatorError

STREAM: Final = "stream"
COMPACT: Final = "compact"
EXPIRE: Final = "expire"


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 refused, 2 usage (argparse's own)."""
    parser = _parser()
    given = parser.parse_args(words)
    if given.out is None and given.job not in (COMPACT, EXPIRE):
        parser.error(f"{given.job} needs --to")
    try:
        if given.job == STREAM:
            if follow(_stream_order(given), None, {}):
                print("stopped: the next start continues from here", file=sys.stderr)
        elif given.job in (COMPACT, EXPIRE):
            print(_maintain(given, parser))
        else:
            for line in carry_out(_order(given), Progress(_to_stderr)):
                print(line, flush=True)
    except UnknownJob as unknown:
        parser.error(f"{unknown}, and {STREAM}, {COMPACT}, {EXPIRE}")
    except OperatorError as error:
        print(f"rollcall-pipeline: {error}", file=sys.stderr)
        return error.exit_code  # as `rollcall pipeline`
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rollcall-pipeline", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("job", help=f"a job, `all`, `ingest`, `{STREAM}`, `{COMPACT}`, `{EXPIRE}`")
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="out", help=f"not of {COMPACT} and {EXPIRE}")
    parser.add_argument("--option", type=_pair, action="append", default=[], metavar="KEY=VALUE")
    jobs = parser.add_argument_group("jobs")
    jobs.add_argument("--since-ms", type=int, default=0)
    jobs.add_argument("--until-ms", type=int, help="default: now")
    jobs.add_argument("--version-pattern")
    jobs.add_argument("--report", metavar="FILE")
    jobs.add_argument("--acknowledge", metavar="HOST:PORT", help="of ingest")
    jobs.add_argument("--as", dest="cluster", metavar="NAME", help="of several in a lake")
    jobs.add_argument("--strict", action="store_true", help="exit code 1 if there was damage")
    jobs.add_argument("--group", action="append", default=[], help="only this group; repeatable")
    jobs.add_argument("--topic", action="append", default=[], help="only this topic; repeatable")
    jobs.add_argument("--incremental", action="store_true", help="the days since the last run")
    jobs.add_argument("--summary", metavar="FILE", help="also write what was done, as JSON")
    jobs.add_argument("--delta", metavar="DIR", help="also write the days as Delta tables")
    lake = parser.add_argument_group(EXPIRE)
    lake.add_argument("--before-ms", type=int, help="days before it are dropped")
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


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _maintain(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """What was done. Raises OperatorError."""
    if given.job == COMPACT:
        return compacted_text(compact_lake(given.source))
    if given.before_ms is None:
        parser.error(f"{EXPIRE} needs --before-ms")
    return expired_text(expire_lake(given.source, given.before_ms))


def _order(given: argparse.Namespace) -> Order:
    return Order(
        given.job,
        given.source,
        given.out,
        given.since_ms,
        epoch_ms() if given.until_ms is None else given.until_ms,
        connector=dict(given.option),
        version_pattern=given.version_pattern,
        report=given.report,
        acknowledge=given.acknowledge,
        cluster=given.cluster,
        strict=given.strict,
        groups=tuple(given.group),
        topics=tuple(given.topic),
        incremental=given.incremental,
        summary=given.summary,
        delta=given.delta,
        until_now=given.until_ms is None,
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
