"""Process: file descriptor limits, and sd_notify for the service manager.

Every connection and every open segment is a file descriptor; the usual soft limit of 1,024 is
raised to the hard one before anything is opened. `notify` speaks systemd's protocol (sd_notify):
one datagram to the socket named in the environment, nothing without one.
"""

import os
import resource
import socket
from typing import Final

SMALL_DESCRIPTOR_LIMIT: Final = (
    4_096  # Less than this is worth a warning: 50 logs and some clients.
)
OWN_DESCRIPTORS: Final = 64
"""Kept for the daemon itself: listeners, journal, admin port, worker process, temporary files."""

PARTITION_DESCRIPTORS: Final = 2
"""Kept for each partition: its active segment, and one more that is read or synced."""

CONNECTIONS_MIN: Final = 16
"""This many connections are accepted, however many partitions there are."""

DESCRIPTOR_LIMIT_MAX: Final = 1_048_576  # Enough; a hard limit of "infinity" is no number.


def raise_descriptor_limit() -> int:
    """Raise RLIMIT_NOFILE to the hard limit; returns what is in force afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > DESCRIPTOR_LIMIT_MAX:
        wanted = DESCRIPTOR_LIMIT_MAX
    else:
        wanted = hard
    if soft != resource.RLIM_INFINITY and soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


def connections_allowed(descriptors: int, partitions: int, backlog: int) -> int:
    """How many connections leave enough descriptors for the files of so many partitions.

    `backlog` connections, of all sockets together, may be refused at once, and as many wait for a
    slot.
    """
    left = descriptors - OWN_DESCRIPTORS - PARTITION_DESCRIPTORS * partitions - 2 * backlog
    return max(left, CONNECTIONS_MIN)


def partitions_allowed(descriptors: int, backlog: int) -> int:
    """For how many partitions the descriptors are enough, with few connections."""
    left = descriptors - OWN_DESCRIPTORS - 2 * backlog - CONNECTIONS_MIN
    return max(left // PARTITION_DESCRIPTORS, 0)


def descriptor_limit() -> int:
    """RLIMIT_NOFILE as it is now: another process may change it (prlimit)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTOR_LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def notify(state: str) -> bool:
    """Send systemd READY=1 or STOPPING=1, if it started us (Type=notify); True if it was sent."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.sendto(state.encode(), address)
    except OSError:
        return False
    return True
