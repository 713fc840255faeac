"""Runs a command on a terminal of its own, and writes what that shows to where this one writes.

Ctrl-C reaches both, because they are one group of processes: the command decides what it means.
"""

import os
import pty
import signal
import subprocess
import sys
import tty


def main() -> int:
    signal.signal(signal.SIGINT, lambda *_: None)
    master, slave = pty.openpty()
    # A line ends as the command ends it.
    tty.setraw(slave)
    process = subprocess.Popen(sys.argv[1:], stdout=slave, stderr=slave)
    os.close(slave)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while piece := _read(master):
        os.write(sys.stdout.fileno(), piece)
    return process.wait()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:
        # The command has let go of its terminal.
        return b""


if __name__ == "__main__":
    sys.exit(main())
