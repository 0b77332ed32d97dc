"""The jobs for spark-submit: the session is the one that it started.

    spark-submit --master k8s://... --py-files rollcall_broker.whl submit.py JOB --from ... --to ...

Takes what `rollcall pipeline run` takes, times as ms since the epoch.
"""

import argparse
import sys
from datetime import UTC, datetime

from pipeline.command import Order, UnknownJob, carry_out
from pipeline.refusals import Refusal


def main() -> int:
    """The exit code: 0 done, 1 refused, 2 usage (argparse's own)."""
    parser = argparse.ArgumentParser(prog="rollcall-pipeline", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="out", required=True)
    parser.add_argument("--since-ms", type=int, default=0)
    parser.add_argument("--until-ms", type=int, default=round(datetime.now(UTC).timestamp() * 1000))
    parser.add_argument("--version-pattern")
    parser.add_argument("--report")
    given = parser.parse_args()
    order = Order(
        given.job,
        given.source,
        given.out,
        given.since_ms,
        given.until_ms,
        version_pattern=given.version_pattern,
        report=given.report,
    )
    try:
        for line in carry_out(order):
            print(line, flush=True)
    except UnknownJob as unknown:
        parser.error(str(unknown))
    except Refusal as refusal:
        print(f"rollcall-pipeline: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
