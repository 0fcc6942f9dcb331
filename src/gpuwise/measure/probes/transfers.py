"""Moving bytes: within memory, from host to device, between processes (all-reduce)."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from gpuwise.measure.probes import Found, Skipped, Task, largest, rate, seconds_of
from gpuwise.measure.probes.arithmetic import settle

MIB = 2**20
SIZES_MIB = (16, 64, 256, 1024)
COLLECTIVE_RUNS = (5, 50)
COLLECTIVE_S = 18.0


def copy(task: Task) -> Found:
    """A copy within the memory that the job computes in; bytes read and written both count."""
    wait = settle(task.device)

    def seconds(mib: int) -> float:
        return min(seconds_of(_copier(mib, task.device), 0.05, least=1, settle=wait))

    mib = largest(seconds, SIZES_MIB, 4.0, task.cap_s)
    taken = seconds_of(_copier(mib, task.device), task.cap_s, settle=wait)
    return rate(2e-9 * mib * MIB, taken, "GB/s", mib=mib, counted="bytes read and bytes written")


def to_device(pinned: bool, task: Task) -> Found:
    """From host to device, from page-locked memory or from ordinary memory."""
    if task.device == "cpu":
        raise Skipped("there is no accelerator to copy to")
    if pinned and task.device == "mps":
        raise Skipped("this device shares the host's memory")
    mib = 128
    source = torch.empty(mib * MIB, dtype=torch.uint8).fill_(1)
    source = source.pin_memory() if pinned else source
    target = torch.empty(mib * MIB, dtype=torch.uint8, device=task.device)
    run = lambda: target.copy_(source, non_blocking=pinned)  # noqa: E731 - a probe is a callable
    taken = seconds_of(run, task.cap_s, settle=settle(task.device))
    return rate(1e-9 * mib * MIB, taken, "GB/s", mib=mib)


def _copier(mib: int, device: str) -> Any:
    source = torch.empty(mib * MIB, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def all_reduce(size_bytes: int, task: Task) -> Found:
    """Bus bandwidth of a sum over processes: size / time × 2(n − 1)/n (NCCL tests, PERFORMANCE.md).

    Over all NVIDIA or AMD devices where there are several, else over two processes of this host.
    """
    several = task.device == "cuda" and task.devices > 1
    world, backend = (task.devices, "nccl") if several else (2, "gloo")
    taken = _over_processes(world, backend, size_bytes, task)
    amount = size_bytes * 2 * (world - 1) / world * 1e-9
    return rate(amount, taken, "GB/s", bytes=size_bytes, processes=world, backend=backend)


def _over_processes(world: int, backend: str, size_bytes: int, task: Task) -> list[float]:
    if not distributed.is_available():
        raise Skipped("this build of torch has no distributed package")
    # A forked process has torch already; one that will use CUDA has to be a fresh one.
    kind = "fork" if backend == "gloo" and sys.platform == "linux" else "spawn"
    context: Any = multiprocessing.get_context(kind)
    mine, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="gpuwise-") as folder:
        spec = (world, backend, size_bytes, task.cap_s, str(Path(folder) / "meet"), theirs)
        processes = [context.Process(target=_member, args=(rank, *spec), daemon=True) for rank in range(world)]
        for process in processes:
            process.start()
        try:
            return _answer(mine, processes)
        finally:
            _end(processes)


def _answer(mine: Connection, processes: list[Any]) -> list[float]:
    """The times that rank 0 sends, unless a process ends without them."""
    until = time.monotonic() + COLLECTIVE_S
    while not mine.poll(0.1):
        if any(p.exitcode not in (None, 0) for p in processes):
            raise Skipped("a process of the collective ended before it had an answer")
        if time.monotonic() > until:
            raise Skipped(f"the collective gave no answer within {COLLECTIVE_S:g} s")
    taken: list[float] = mine.recv()
    return taken


def _end(processes: list[Any]) -> None:
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def _member(rank: int, world: int, backend: str, size_bytes: int, cap_s: float, meet: str, sends: Connection) -> None:
    """One process of the collective; rank 0 decides how often, from one run, and sends the times."""
    torch.set_num_threads(1)
    if backend == "gloo":  # a host whose own name leads nowhere still has its loopback
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    else:
        torch.cuda.set_device(rank)
    distributed.init_process_group(backend, init_method=f"file://{meet}", rank=rank, world_size=world)
    device = "cuda" if backend == "nccl" else "cpu"
    data = torch.ones(max(size_bytes // 4, 1), device=device)
    first = statistics.median(_reduce(data) for _ in range(3))
    runs = torch.tensor(
        [min(max(round(cap_s / max(first, 1e-6)), COLLECTIVE_RUNS[0]), COLLECTIVE_RUNS[1])], device=device
    )
    distributed.broadcast(runs, 0)
    taken = [_reduce(data) for _ in range(int(runs.item()))]
    if rank == 0:
        sends.send(taken)
    distributed.destroy_process_group()


def _reduce(data: torch.Tensor) -> float:
    """Seconds of one sum that all processes begin together."""
    distributed.barrier()
    before = time.perf_counter()
    distributed.all_reduce(data)
    if data.is_cuda:
        torch.cuda.synchronize()
    taken = time.perf_counter() - before
    data.fill_(1.0)
    return taken
