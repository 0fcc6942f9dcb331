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
READY = "ready"
Question = Task | bytes
"""A task, or a record of a run to be kept."""


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection

    def end(self) -> None:
        self.process.kill()
        self.pipe.close()


class Pool:
    """number: of processes. folder: an empty one, where they stand: a name in a request meets no file there."""

    def __init__(self, number: int, folder: str) -> None:
        self._number, self._folder = number, folder
        self._spawn = multiprocessing.get_context("spawn")
        self._threads = ThreadPoolExecutor(2 * number, "gpuwise-pipe")
        self._free: asyncio.Queue[_Worker] = asyncio.Queue()
        self._all: set[_Worker] = set()

    async def start(self) -> None:
        for _ in range(self._number):
            self._add()

    async def stop(self) -> None:
        for worker in self._all:
            worker.end()
        self._all.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _add(self) -> None:
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=_work, args=(theirs, self._folder), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._all.add(worker)
        self._free.put_nowait(worker)

    async def ask(self, question: Question, tell: Callable[[str], None]) -> Reply | None:
        """The reply; None where the process died or took too long. Cancelled, it ends the process that was asked."""
        worker = await self._free.get()
        try:
            async with asyncio.timeout(LONGEST_S):
                found = await self._talk(worker, question, tell)
        except (EOFError, OSError, TimeoutError):
            self._replace(worker)
            return None
        except BaseException:
            self._replace(worker)
            raise
        self._free.put_nowait(worker)
        return found

    def _replace(self, worker: _Worker) -> None:
        worker.end()
        self._all.discard(worker)
        self._add()

    async def _talk(self, worker: _Worker, question: Question, tell: Callable[[str], None]) -> Reply:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, worker.pipe.send, question)
        while True:
            said: Any = await loop.run_in_executor(self._threads, worker.pipe.recv)
            if isinstance(said, Reply):
                return said
            if said != READY:
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
