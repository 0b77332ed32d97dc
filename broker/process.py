"""What does the daemon ask of the operating system: descriptors, and word to the service manager?

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
DESCRIPTOR_LIMIT_MAX: Final = 1_048_576  # Enough; a hard limit of "infinity" helps nobody.


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


def notify(state: str) -> bool:
    """Tell systemd READY=1 or STOPPING=1, if it started us (Type=notify); True if it listens."""
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
