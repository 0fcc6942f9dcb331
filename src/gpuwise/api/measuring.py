"""The verbs about this machine: measure a run and keep it, what the machine can do, whether it is ready, past runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from secrets import token_hex

from gpuwise.errors import GpuwiseError, InvalidInput, Message
from gpuwise.measure import kept, session
from gpuwise.measure.compare import Comparison
from gpuwise.measure.compare import compare as compare_records
from gpuwise.measure.devices import devices
from gpuwise.measure.gauges import Sampler
from gpuwise.measure.host import host
from gpuwise.measure.job import Job, from_json, from_mapping
from gpuwise.measure.record import Device, Record, Setup
from gpuwise.measure.verdict import Judgement, judge
from gpuwise.names import Match, resolve
from gpuwise.request import MeasureRequest, RunsRequest
from gpuwise.store import package
from gpuwise.store.runs import Run, Store, open_store

Tell = Callable[[Message], None]
JOB_FILE = "job.json"
TRAINING = ("-m", "gpuwise.measure.train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measured run with its verdict. run: its number in the store, None if it could not be kept."""

    request: MeasureRequest | RunsRequest
    as_of: date
    record: Record
    judgement: Judgement
    run: int | None
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The runs of the store, newest first. total: before the limit."""

    request: RunsRequest
    as_of: date
    runs: tuple[tuple[int, Record], ...]
    total: int
    place: str
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Runs of a kind beside runs of another kind."""

    request: RunsRequest
    as_of: date
    before: tuple[Record, ...]
    after: tuple[Record, ...]
    comparison: Comparison
    warnings: tuple[Message, ...] = ()


# ---- measure ----


def measure(request: MeasureRequest, *, today: date, tell: Tell) -> Measured:
    """Train the reference model, or run the person's program, and keep what was seen, also of a run that fails.

    Raises InvalidInput before anything runs; what happens later is told by the record's `ending` and `failure`.
    """
    plan = _plan(request)
    shelf = Shelf.of(tell, request.resume)
    record = _run(plan, request, shelf, tell)
    return Measured(
        request=request,
        as_of=today,
        record=record,
        judgement=judge(record),
        run=shelf.number,
        warnings=tuple(shelf.warnings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run. job: of reference training; folder: for marks and checkpoint; setup: as far as it is known."""

    command: tuple[str, ...]
    setup: Setup
    folder: Path
    data: Path | None
    job: Job | None = None


def _plan(request: MeasureRequest) -> Plan:
    if request.command:
        return _program(request)
    return _resumed(request) if request.resume else _training(request)


def _program(request: MeasureRequest) -> Plan:
    words = [Path(word).name for word in request.command]
    named = next((w for w in words[1:] if w.endswith((".py", ".sh"))), words[0])
    return Plan(
        command=request.command,
        setup=Setup(workload=named, command=request.command),
        folder=_new_folder(),
        data=_data(request),
    )


def _data(request: MeasureRequest) -> Path | None:
    if request.data is None:
        return None
    path = Path(request.data).expanduser()
    if not path.exists():
        raise InvalidInput(
            Message("--data {path}: there is nothing.", path=request.data),
            Message("Name a folder of images, or a CSV beside them."),
        )
    return path.resolve()


def _training(request: MeasureRequest) -> Plan:
    _need_torch()
    assert request.workload is not None
    folder, data = _new_folder(), _data(request)
    where = {
        "model": request.workload,
        "data": None if data is None else str(data),
        "checkpoint": str(folder / "checkpoint"),
    }
    job = from_mapping({**where, **_said(request)})
    return _of_job(job, folder, request.processes, request.workload)


def _said(request: MeasureRequest) -> dict[str, object]:
    """What the request says of a job, under the job's names."""
    alike = (
        "steps", "epochs", "target_fraction", "patience", "stall_s", "batch", "image_size", "precision",
        "memory_format", "compile", "label", "optimizer", "learning_rate", "feed", "cache", "workers", "device", "seed",
    )  # fmt: skip
    minutes = None if request.until_s is None else request.until_s / 60
    return {name: getattr(request, name) for name in alike} | {"minutes": minutes, "limits": not request.no_limits}


def _resumed(request: MeasureRequest) -> Plan:
    """The rest of a run: its job with the limits that are given now."""
    assert request.resume is not None
    _need_torch()
    record = kept.find(request.resume, open_store())
    folder = kept.runs_folder() / (record.folder or "")
    if record.folder is None or not (folder / JOB_FILE).is_file():
        raise InvalidInput(
            Message("Run {run} cannot be resumed: its folder is not on this machine.", run=request.resume),
            Message("Only reference training leaves a checkpoint, where it ran. Measure again."),
        )
    limits = {k: v for k, v in _said(request).items() if v is not None and k in _LIMITS}
    job = replace(from_json((folder / JOB_FILE).read_text(encoding="utf-8")), resume=True, **limits)  # type: ignore[arg-type]
    return _of_job(job, folder, record.setup.processes, record.setup.workload)


_LIMITS = ("steps", "epochs", "target_fraction", "patience", "minutes", "stall_s")


def _of_job(job: Job, folder: Path, processes: int, workload: str) -> Plan:
    spec = str(folder / JOB_FILE)
    several = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
    command = (sys.executable, *(several if processes > 1 else ()), *TRAINING, spec)
    setup = Setup(workload=workload, model=job.network, seed=job.seed, processes=processes, compiled=job.compile)
    return Plan(command=command, setup=setup, folder=folder, data=Path(job.data) if job.data else None, job=job)


def _need_torch() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("torch", "torchvision", "psutil", "simplejpeg", "cv2") if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            Message("measuring needs {names}, which is not installed.", names=", ".join(missing)),
            Message("Install the extra: pip install 'gpuwise[measure]'"),
        )


def _new_folder() -> Path:
    return kept.runs_folder() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{token_hex(3)}"


def _run(plan: Plan, request: MeasureRequest, shelf: Shelf, tell: Tell) -> Record:
    """Nothing is written before the command is known to be one that can be started."""
    session.executable(plan.command, os.environ)
    _begin(plan)
    until = session.Until()
    if plan.job is None:
        minutes = None if request.until_s is None else request.until_s / 60
        until = session.Until(steps=request.steps, minutes=minutes)
    record = session.run(
        plan.command,
        setup=plan.setup,
        folder=plan.folder,
        host=host(plan.data),
        devices=devices(),
        watch=Sampler(),
        until=until,
        patience=session.Patience(stall_s=request.stall_s, first_stall_s=max(request.stall_s, FIRST_STALL_S)),
        attach=plan.job is None,
        own_data=plan.data is not None,
        tell=tell,
        keep=lambda seen: shelf.keep(_named(seen, plan)),
    )
    return _named(record, plan)


USUAL_SIDE = 224
"""Pixels a side of an image in the built-in workloads: training at another size is another job, under another name."""
FIRST_STALL_S = 900.0
"""Before the first step a program may import, compile, make paintings and re-encode images."""


def _named(record: Record, plan: Plan) -> Record:
    """The record with the folder of its checkpoint, and with the catalogue's names of its devices."""
    found = [replace(device, accelerator=_accelerator(device)) for device in record.devices]
    run = record.measurement
    if run is not None and run.device == "gpu" and found:
        run = replace(run, accelerator=found[0].accelerator or run.accelerator)
    side = record.setup.image_size
    if run is not None and plan.job is not None and side not in (None, USUAL_SIDE):
        run = replace(run, workload=f"{plan.job.network}@{side}")
    folder = plan.folder.name if plan.job is not None else None
    return replace(record, devices=tuple(found), measurement=run, folder=folder)


def _accelerator(device: Device) -> str | None:
    """The id in the catalogue of what the driver calls the device; None where the name fits none, or several."""
    if device.backend == "cpu" or device.slice:
        return None
    name = resolve(package.facts().index, device.name, memory_gib=device.memory_gib and round(device.memory_gib))
    return name.accelerator.id if isinstance(name, Match) else None


def _begin(plan: Plan) -> None:
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        if plan.job is not None:
            (plan.folder / JOB_FILE).write_text(plan.job.to_json(), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            Message("The folder for runs cannot be written: {why}.", why=error.strerror or str(error)),
            Message("Make room, or set XDG_DATA_HOME to a folder that can be written."),
        ) from error


@dataclass(slots=True)
class Shelf:
    """Where a running measurement is kept from its start on, again and again under one number.

    A store that fails is told once, and the run goes on: its record is still shown at the end.
    """

    store: Store | None
    version: str
    number: int | None
    warnings: list[Message]

    @staticmethod
    def of(tell: Tell, resumed: str | None = None) -> Shelf:
        """resumed: the run that goes on, under the number that it has."""
        number = int(resumed) if resumed and kept.is_number(resumed) else None
        try:
            store, warnings = open_store(), list[Message]()
        except GpuwiseError as error:
            store, warnings = None, [Message("The run is not kept: {why}", why=error.message)]
            tell(warnings[0])
        return Shelf(store, package.version(), number, warnings)

    def keep(self, record: Record) -> None:
        if self.store is None:
            return
        run = kept.run_of(record, self.version)
        try:
            if self.number is None:
                self.number = self.store.put(run)
            else:
                self.store.replace(self.number, run)
        except GpuwiseError as error:
            self.warnings.append(Message("The run is not kept as it is now: {why}", why=error.message))
            self.store = None


# ---- past runs ----


def runs(request: RunsRequest, *, today: date) -> Listed | Measured | Compared:
    """List, show or compare the runs that were kept."""
    if request.action == "list":
        return _listed(request, today)
    return _shown(request, today) if request.action == "show" else _compared(request, today)


def _listed(request: RunsRequest, today: date) -> Listed:
    store = open_store()
    found = store.list(kind=kept.KIND, workload=request.workload)
    shown = found if request.limit is None else found[: request.limit]
    rows, warnings = [], []
    for run in shown:
        try:
            rows.append((_number(run), kept.record_of(run)))
        except GpuwiseError as error:
            warnings.append(error.message)
    return Listed(
        request=request,
        as_of=today,
        runs=tuple(rows),
        total=len(found),
        place=store.place,
        warnings=tuple(warnings),
    )


def _number(run: Run) -> int:
    assert run.id is not None
    return run.id


def _shown(request: RunsRequest, today: date) -> Measured:
    (name,) = request.names
    record = kept.find(name, open_store())
    number = int(name) if kept.is_number(name) else None
    return Measured(request=request, as_of=today, record=record, judgement=judge(record), run=number)


def _compared(request: RunsRequest, today: date) -> Compared:
    store = open_store()
    before, after = (tuple(kept.find(one.strip(), store) for one in name.split(",")) for name in request.names)
    return Compared(request=request, as_of=today, before=before, after=after, comparison=compare_records(before, after))
