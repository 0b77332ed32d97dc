"""Serve: run the daemon in the foreground until a signal stops it.

Reads the options; broker/main.py does the rest and returns the exit code. Until the daemon handles
signals itself, they end the process (cli/main.py). The usual options are read by cli/start.py.
"""

from pathlib import Path

import click

from cli.options import configuration_options
from cli.read_options import read_options
from cli.start import start_daemon


@click.command(
    epilog="\b\nExamples:\n"
    "  rollcall serve\n"
    "  rollcall serve --data-dir /var/lib/rollcall --listen :9092 --advertise kafka.lan:9092\n"
    "  rollcall serve --listen 127.0.0.1:0 --set group.initial.rebalance.delay.ms=0\n"
    "\n"
    "A value on the command line overrides the environment (KAFKA_GROUP_MAX_SIZE, ROLLCALL_FLUSH), "
    "which overrides the file; otherwise Kafka's defaults apply. `rollcall config` shows the "
    "source of each value. Exit code 2 means that the usage or the configuration is wrong."
)
@click.option(
    "--repair",
    is_flag=True,
    help="Cut what is damaged in the data directory, keep it in *.damaged files, report what was "
    "lost, then serve. Without this option, damaged offsets prevent the start.",
)
@configuration_options
def serve(
    *,
    repair: bool,
    data_dir: str | None,
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    admin: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
) -> int:
    """Run the daemon in the foreground.

    Prints one line when it is ready. Ctrl-C, SIGTERM and SIGHUP stop it: pending requests are
    answered, everything is stored, and the exit code is 0. A second signal ends it at once.
    """
    config = read_options(
        data_dir=data_dir,
        listen=listen,
        advertise=advertise,
        admin=admin,
        config_file=config_file,
        pairs=pairs,
    )
    return start_daemon(config, repair=repair)
