"""Processes that answer questions one at a time: an answer that nobody waits for any more is ended, and none can take
the server with it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from gpuwise.errors import Message
from gpuwise.web.answering import Reply, Task

LONGEST_S = 600.0
"""After so long a question is given up."""
FAREWELL_S = 2.0
Question = Task | bytes
"""A task, or a record of a run to be kept."""


class NoReply(Exception):
    """The process ended, or took too long. signal: what ended it, 0 where it ended itself, None where it was late."""

    def __init__(self, ended_by: int | None) -> None:
        super().__init__(ended_by)
        self.signal = ended_by


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection

    def end(self) -> None:
        self.process.kill()
        self.pipe.close()

    def ended_by(self) -> int:
        """Waits for a process whose pipe is closed."""
        self.process.join(FAREWELL_S)
        return max(0, -(self.process.exitcode or 0))


class Pool:
    """number: of processes. folder: an empty one, where they stand: a name in a request meets no file there."""

    def __init__(self, number: int, folder: str, longest_s: float = LONGEST_S) -> None:
        self._number, self._folder, self._longest_s = number, folder, longest_s
        self._spawn = multiprocessing.get_context("spawn")
        self._threads = ThreadPoolExecutor(2 * number + 2, "gpuwise-pipe")
        self._free: asyncio.Queue[_Worker] = asyncio.Queue()
        self._all: set[_Worker] = set()

    async def start(self) -> None:
        for _ in range(self._number):
            self._add()

    async def stop(self) -> None:
        for worker in self._all:
            worker.end()
        for worker in self._all:
            worker.process.join(FAREWELL_S)
        self._all.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def processes(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(worker.process.pid or 0 for worker in self._all)

    def _add(self) -> None:
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=_work, args=(theirs, self._folder), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._all.add(worker)
        self._free.put_nowait(worker)

    async def ask(self, question: Question, tell: Callable[[str], None]) -> Reply:
        """The reply. NoReply where there is none. Cancelled, it ends the process that was asked."""
        worker = await self._free.get()
        try:
            async with asyncio.timeout(self._longest_s):
                found = await self._talk(worker, question, tell)
        except TimeoutError:
            self._replace(worker)
            raise NoReply(None) from None
        except (EOFError, OSError):
            ended_by = await asyncio.get_running_loop().run_in_executor(self._threads, worker.ended_by)
            self._replace(worker)
            raise NoReply(ended_by) from None
        except BaseException:
            self._replace(worker)
            raise
        self._free.put_nowait(worker)
        return found

    def _replace(self, worker: _Worker) -> None:
        worker.end()
        self._threads.submit(worker.process.join, FAREWELL_S)  # so that nothing of it is left
        self._all.discard(worker)
        self._add()

    async def _talk(self, worker: _Worker, question: Question, tell: Callable[[str], None]) -> Reply:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, worker.pipe.send, question)
        while True:
            said: Any = await loop.run_in_executor(self._threads, worker.pipe.recv)
            if isinstance(said, Reply):
                return said
            tell(said)


def _work(pipe: Connection, folder: str) -> None:
    """A worker's life: it answers until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    os.chdir(folder)
    from gpuwise.locale import words
    from gpuwise.web import answering

    def tell(progress: Message) -> None:
        pipe.send(words(progress))

    answering.warm()
    try:
        while True:
            question = pipe.recv()
            pipe.send(answering.keep(question) if isinstance(question, bytes) else answering.reply(question, tell))
    except (EOFError, OSError):
        return
