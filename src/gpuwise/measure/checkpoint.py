"""Checkpoints that are whole or not there: written beside, flushed to the disk, then put in place of the last one."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from gpuwise.errors import DataError, InvalidInput, Message

LAST, BEST = "last.pt", "best.pt"


def write(folder: Path, name: str, state: Mapping[str, Any]) -> None:
    """Raises OSError where the disk is full or cannot be written; the checkpoint before stays as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.{os.getpid()}"
    try:
        _save(beside, state)
        os.replace(beside, folder / name)
    finally:
        beside.unlink(missing_ok=True)
    _flush_folder(folder)


def _save(path: Path, state: Mapping[str, Any]) -> None:
    try:
        with path.open("wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
    except RuntimeError as error:  # torch says so when a write comes up short
        raise OSError(str(error).splitlines()[0]) from error


def _flush_folder(folder: Path) -> None:
    """So that the new name outlives a power cut; not every system has this."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: Path) -> dict[str, Any] | None:
    """What was written, on the CPU; None where there is none yet. Raises DataError for a file that is no checkpoint."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise DataError(
            Message("{file} is no checkpoint: {reason}", file=path.name, reason=str(error).splitlines()[0]),
            Message("Take it away to begin anew."),
            file=str(path),
        ) from error
    return dict(state)


def same_job(written: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises InvalidInput where the checkpoint is of another training: what differs is named."""
    unlike = [name for name in now if written.get(name) != now[name]]
    if unlike:
        raise InvalidInput(
            Message(
                "the checkpoint is of another training: {differences}",
                differences=", ".join(f"{name} {written.get(name)} instead of {now[name]}" for name in unlike),
            ),
            Message("Give the same settings again, or another checkpoint folder."),
        )


def chance() -> dict[str, Any]:
    """States of the random generators that training draws from."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"python": random.getstate(), "torch": torch.get_rng_state(), "cuda": cuda}


def set_chance(state: Mapping[str, Any]) -> None:
    version, inner, gauss = state["python"]
    random.setstate((version, tuple(inner), gauss))
    torch.set_rng_state(state["torch"])
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
