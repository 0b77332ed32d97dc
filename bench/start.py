"""Start: what the start of a daemon on a data directory costs, in parts, and the memory after it.

    .venv/bin/python -m bench.start [DATA_DIR] [--starts 5] [--rest 1] [--rollcall COMMAND]

Each start gets a copy of DATA_DIR, for example of one that was killed in the middle of a load; or
an empty directory. Prints wall and CPU time (user and system, of the process) until ApiVersions is
answered and until the ready line, what the log says about the load, and the memory after `--rest`
seconds. The daemon is killed with -9. On a busy machine only the CPU times say something.
"""

import argparse
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from bench.daemon import cpu_seconds

API_VERSIONS = bytes.fromhex("0000000a0012000000000001ffff")  # version 0, no client id
POLL_S = 0.002
SUMMARY = re.compile(r"Finished loading of metadata from __consumer_offsets in .*")


def cpu_ms(pid: int) -> int:
    return round(cpu_seconds(pid) * 1000)


def rss_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def until_answered(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait for the answer to an ApiVersions request."""
    while process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                sock.sendall(API_VERSIONS)
                if len(sock.recv(4)) == 4:
                    return
        except OSError:
            pass
        time.sleep(POLL_S)
    raise SystemExit("the daemon has ended")


def start(command: str, data: Path, log: Path, rest_s: float) -> None:
    port = free_port()
    began = time.monotonic()
    words = [command, "serve", "--data-dir", str(data), "--listen", f"127.0.0.1:{port}"]
    words += ["--admin", "127.0.0.1:0"]
    with log.open("wb") as lines:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=lines)
    ready: list[tuple[float, int]] = []

    def wait_for_ready_line() -> None:
        assert process.stdout is not None
        if process.stdout.readline():
            ready.append((time.monotonic() - began, cpu_ms(process.pid)))

    waiting = threading.Thread(target=wait_for_ready_line)
    waiting.start()
    until_answered(port, process)
    first_s, first_cpu_ms = time.monotonic() - began, cpu_ms(process.pid)
    waiting.join()
    ((ready_s, ready_cpu_ms),) = ready
    time.sleep(rest_s)
    memory_mb = rss_mb(process.pid)
    process.kill()
    process.wait()
    print(
        f"first answer {first_s:.2f} s (CPU {first_cpu_ms} ms), ready {ready_s:.2f} s "
        f"(CPU {ready_cpu_ms} ms), RSS {memory_mb:.1f} MB",
        flush=True,
    )
    found = SUMMARY.search(log.read_text())
    if found is not None:
        print(f"  {found[0]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rest", type=float, default=1.0, help="seconds before memory is read")
    parser.add_argument("--rollcall", default=".venv/bin/rollcall")
    arguments = parser.parse_args()
    for _ in range(arguments.starts):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data")
            if arguments.data_dir is not None:
                shutil.copytree(arguments.data_dir, data)
            start(arguments.rollcall, data, Path(folder, "log"), arguments.rest)


if __name__ == "__main__":
    main()
