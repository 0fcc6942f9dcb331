"""Stands between gpuwise and the program it measures: python -I -S guard.py PARENT COMMAND…

Starts the command in its own process group, passes its exit on (a signal as the same signal), and kills the whole
group when the parent is gone, however it went. SIGTERM reaches the program itself, since it is sent to the group.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
LOOK_S = 1.0


def die_with(parent: int) -> None:
    """On Linux the kernel sends SIGTERM when the parent ends; elsewhere its number is looked at every second."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    threading.Thread(target=look, args=(parent,), daemon=True).start()


def look(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.killpg(0, signal.SIGKILL)


def main(parent: int, command: list[str]) -> int:
    def ended(number: int, frame: object) -> None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ended)
    die_with(parent)
    try:
        code = subprocess.Popen(command).wait()
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 126
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
