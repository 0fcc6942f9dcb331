"""Work on foreign models, done apart: in a child process with a time limit, so that neither a model that hangs, nor one
that crashes or takes all the memory, takes the program with it.

    python -m gpuwise.measure.apart < call.json

Standard input holds the call (a function of this package, its arguments and the limits), standard output the answer:
{"result": …}, {"error": …} or {"late": stage}. What the model prints goes to the error channel. Stages: "start"
(importing and building), then those that the function tells.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuwise.errors import GpuwiseError, InvalidInput, MeasurementFailed, Message, UnknownName

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

START_S = 90.0
"""For importing torch and a person's own modules: slow on a network drive, and no fault of the model."""
SPARE_S = 10.0
"""After the sum of all limits the parent itself ends a child that could not."""
MEMORY_SHARE = 0.9
"""Of the memory that is free, which the child may take."""

Tell = Callable[[str], None]


def call(function: str, arguments: Mapping[str, Any], limits_s: Mapping[str, float]) -> Any:
    """What `function` ("module:name") gives, called with `arguments` and `tell` in a child process. Arguments and
    result are plain values. Raises what the function raised, and MeasurementFailed for a time-out or a crash."""
    limits = {"start": START_S, **limits_s}
    text = json.dumps({"function": function, "arguments": arguments, "limits_s": limits})
    command = [sys.executable, "-m", "gpuwise.measure.apart"]
    most_s = sum(limits.values()) + SPARE_S
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", env=_environment(), timeout=most_s
        )
    except subprocess.TimeoutExpired as error:
        raise _late(list(limits)[-1], most_s) from error
    return _answer(done)


def _environment() -> dict[str, str]:
    """The child finds the modules that this process finds."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}


def _answer(done: subprocess.CompletedProcess[str]) -> Any:
    lines = done.stdout.splitlines()
    if not lines:
        raise _crashed(done)
    answer = json.loads(lines[-1])
    if "late" in answer:
        raise _late(answer["late"], answer["limit_s"])
    if "error" in answer:
        raise _error(answer["error"])
    return answer["result"]


def _late(stage: str, limit_s: float) -> MeasurementFailed:
    what = Message("importing and building the model") if stage == "start" else Message("counting the model")
    return MeasurementFailed(
        Message("{what} took longer than {n:g} s and was stopped", what=what, n=limit_s),
        Message("Try a smaller input (--input-size, --tokens), or state the counts in a TOML file."),
    )


def _crashed(done: subprocess.CompletedProcess[str]) -> MeasurementFailed:
    if done.returncode == -getattr(signal, "SIGKILL", 9):
        return out_of_memory(Message("the process that counts was killed"))
    said = done.stderr.strip().splitlines() or ["-"]
    how = Message("code {n}", n=done.returncode)
    if done.returncode < 0:
        how = Message("signal {n}", n=-done.returncode)
    return MeasurementFailed(
        Message("the process that counts the model ended without an answer ({how}): {said}", how=how, said=said[-1]),
        Message("Check that the model can be built and run alone, or state its counts in a TOML file."),
    )


def out_of_memory(what: Message) -> MeasurementFailed:
    return MeasurementFailed(
        Message("{what}: most likely the memory of this machine did not suffice", what=what),
        Message("Try a smaller input (--input-size, --tokens), or state the counts in a TOML file."),
    )


# ---- in the child ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer the call on standard input, then end at once: torch takes long to tidy up."""
    channel = os.dup(1)
    os.dup2(2, 1)
    given = json.loads(sys.stdin.read())
    limits = _Limits(given["limits_s"], channel)
    limits.stage("start")
    module, _, name = given["function"].partition(":")
    _die_first()
    _limit_memory()
    try:
        result = getattr(importlib.import_module(module), name)(**given["arguments"], tell=limits.stage)
        answer = {"result": asdict(result)}
    except GpuwiseError as error:
        answer = {"error": _said(error)}
    except MemoryError:
        answer = {"error": _said(out_of_memory(Message("an allocation of the process that counts was refused")))}
    _write(channel, answer)
    os._exit(0)


def _write(channel: int, answer: Mapping[str, Any]) -> None:
    os.write(channel, (json.dumps(answer) + "\n").encode())


class _Limits:
    """Ends the process when a stage takes too long; the parent reads which."""

    def __init__(self, limits_s: Mapping[str, float], channel: int) -> None:
        self.limits_s, self.channel = limits_s, channel
        self.timer: threading.Timer | None = None

    def stage(self, name: str) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = threading.Timer(self.limits_s[name], self._end, (name,))
        self.timer.daemon = True
        self.timer.start()

    def _end(self, name: str) -> None:
        _write(self.channel, {"late": name, "limit_s": self.limits_s[name]})
        os._exit(1)


def _die_first() -> None:
    """Where memory runs out, this process is the one to go (Linux)."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _limit_memory() -> None:
    """An allocation beyond what is free fails with an error, instead of the machine slowing down or killing (Linux)."""
    from gpuwise.measure.host import host

    free_gib = host().available_gib
    if resource is None or free_gib is None or sys.platform != "linux":
        return
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (int(MEMORY_SHARE * free_gib * 2**30), hard))


def _said(error: GpuwiseError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": _plain(error.message),
        "hint": _plain(error.hint),
        "nearest": list(getattr(error, "nearest", ())),
    }


def _plain(value: object) -> Any:
    """A message as plain values, so that it can be translated where it is shown."""
    if isinstance(value, Message):
        return {"template": value.template, "values": {name: _plain(v) for name, v in value.values.items()}}
    return value if isinstance(value, int | float) else str(value)


def _error(said: Mapping[str, Any]) -> GpuwiseError:
    message, hint = _message(said["message"]), _message(said["hint"])
    if said["kind"] == "UnknownName":
        return UnknownName(message, hint, said["nearest"])
    return (MeasurementFailed if said["kind"] == "MeasurementFailed" else InvalidInput)(message, hint)


def _message(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    return Message(said["template"], **{name: _message(value) for name, value in said["values"].items()})


if __name__ == "__main__":
    main()
