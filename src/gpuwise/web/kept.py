"""Answers that are kept for a while, so that a shared address is not computed for each reader."""

from __future__ import annotations

import time
from collections import OrderedDict

from gpuwise.web.answering import Reply, Task

MOST_BYTES, LONGEST_S = 64 * 2**20, 300.0
EACH_BYTES = 1024
"""What an entry takes beside its body, about."""


class Kept:
    """most_bytes: of all answers together; the oldest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._replies: OrderedDict[Task, tuple[float, Reply]] = OrderedDict()

    def get(self, task: Task) -> Reply | None:
        when, reply = self._replies.get(task, (0.0, None))
        return reply if time.monotonic() - when < LONGEST_S else None

    def put(self, task: Task, reply: Reply) -> None:
        self._drop(task)
        self._replies[task] = (time.monotonic(), reply)
        self._bytes += len(reply.body) + EACH_BYTES
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._replies)))

    def _drop(self, task: Task) -> None:
        _when, reply = self._replies.pop(task, (0.0, None))
        if reply is not None:
            self._bytes -= len(reply.body) + EACH_BYTES
