"""The verbs about this machine: measure a run and keep it, what the machine can do, whether it is ready, past runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from secrets import token_hex

from gpuwise.errors import GpuwiseError, InvalidInput, MeasurementFailed, Message
from gpuwise.measure import kept, session
from gpuwise.measure.compare import Comparison
from gpuwise.measure.compare import compare as compare_records
from gpuwise.measure.devices import devices
from gpuwise.measure.gauges import Sampler
from gpuwise.measure.host import host
from gpuwise.measure.job import Job, from_json, from_mapping
from gpuwise.measure.record import Device, Record, Setup, Work
from gpuwise.measure.verdict import Judgement, judge
from gpuwise.model import Precision
from gpuwise.names import Match, resolve
from gpuwise.request import MeasureRequest, RunsRequest
from gpuwise.store import package
from gpuwise.store.runs import Run, Store, open_store

Tell = Callable[[Message], None]
JOB_FILE = "job.json"
TRAINING = ("-m", "gpuwise.measure.train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measured run with its verdict. run: its number in the store, None if it could not be kept. tried: what was
    found to help the loader (--advise), None where nothing was tried."""

    request: MeasureRequest | RunsRequest
    as_of: date
    record: Record
    judgement: Judgement
    run: int | None
    tried: tuple[Message, ...] | None = None
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
    """Runs of a kind beside runs of another kind, each with its number or file."""

    request: RunsRequest
    as_of: date
    before: tuple[tuple[str, Record], ...]
    after: tuple[tuple[str, Record], ...]
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
    if plan.job is not None and _never_began(record):
        raise _refused(record)
    return Measured(
        request=request,
        as_of=today,
        record=record,
        judgement=judge(record),
        run=shelf.number,
        tried=_tried(plan, record, tell) if request.advise else None,
        warnings=tuple(shelf.warnings),
    )


def _never_began(record: Record) -> bool:
    """Reference training that could not do a step: there is nothing to show or to keep."""
    return record.status == "failed" and record.ending in ("data", "failed") and not (record.pace or record.epochs)


def _refused(record: Record) -> GpuwiseError:
    what = Message("{why}.", why=(record.failure or "Training did not begin").rstrip("."))
    if record.ending == "data":
        return InvalidInput(what, Message("Give --data other images; see gpuwise measure --help."))
    return MeasurementFailed(what, Message("Change what you asked for; see gpuwise measure --help."))


def _tried(plan: Plan, record: Record, tell: Tell) -> tuple[Message, ...] | None:
    """What helps the loader of reference training, tried on some of its own images."""
    assert plan.job is not None
    side = record.setup.image_size
    if side is None or record.status == "failed":
        return None
    from gpuwise.measure.advice import tried
    from gpuwise.measure.data import find

    tell(Message("Trying what feeds the device faster ..."))
    found = find(plan.data, seed=plan.job.seed, painters=plan.job.painters, label=plan.job.label)
    files = [sample.path for sample in found.train]
    return tried(files, side, plan.job.feed, record)


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
        setup=Setup(workload=named, command=request.command, samples_per_step=request.samples_per_step),
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
    name = record.folder or ""
    folder = kept.runs_folder() / Path(name).name
    if not name or folder.name != name or not (folder / JOB_FILE).is_file():
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
        patience=_patience(request, plan),
        attach=plan.job is None,
        own_data=plan.data is not None,
        tell=tell,
        keep=lambda seen: shelf.keep(_named(seen, plan)),
    )
    return _named(record, plan)


def _patience(request: MeasureRequest, plan: Plan) -> session.Patience:
    """A limit that the person gave holds from the start on; else there is more time before the first step."""
    given = request.stall_s != MeasureRequest().stall_s
    first = request.stall_s if given else max(request.stall_s, FIRST_STALL_S)
    usual = session.Patience(stall_s=request.stall_s, first_stall_s=first)
    return usual if plan.job is None else replace(usual, grace_s=session.TRAINING_GRACE_S)


USUAL_SIDE = 224
"""Pixels a side of an image in the built-in workloads: training at another size is another job, under another name."""
MARKS_ROOM_BYTES = 1 << 20
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
    work = None if record.work is None else _with_peak(record.work, record.setup.precision, found)
    return replace(record, devices=tuple(found), measurement=run, folder=folder, work=work)


def _with_peak(work: Work, precision: Precision | None, used: Sequence[Device]) -> Work:
    """The counts with the peak that MFU is measured against: the data sheet's dense rate of the arithmetic that ran."""
    card = package.accelerators().get(used[0].accelerator or "") if used else None
    if card is None or precision is None:
        why = "no data sheet is known for this device" if card is None else "the precision is not known"
        return replace(work, reasons={**work.reasons, "peak_tflops": why})
    name = "fp32_tflops" if precision == "fp32" else f"{_ARITHMETIC.get(precision, precision)}_tflops"
    peak = getattr(card, name)
    if peak is None:
        why = f"the data sheet of {card.name} has no {precision} rate"
        return replace(work, reasons={**work.reasons, "peak_tflops": why})
    return replace(work, peak_tflops=peak, peak_source=f"data sheet of {card.name}, {name.partition('_')[0]}, dense")


_ARITHMETIC = {"amp": "fp16", "amp_bf16": "bf16"}
"""Precision -> the arithmetic of its matrix products."""


def _accelerator(device: Device) -> str | None:
    """The id in the catalogue of what the driver calls the device; None where the name fits none, or several."""
    if device.backend == "cpu" or device.slice:
        return None
    name = resolve(package.facts().index, device.name, memory_gib=device.memory_gib and round(device.memory_gib))
    return name.accelerator.id if isinstance(name, Match) else None


def _begin(plan: Plan) -> None:
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        room = plan.folder / "room"
        room.write_bytes(bytes(MARKS_ROOM_BYTES))  # a full disk is told now, not after the run
        room.unlink()
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
        if self.store is None or (_never_began(record) and record.folder):
            return
        if self.number is None and record.status == "running" and record.pace is None:
            return  # nothing was seen yet
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


def keep(data: object) -> int:
    """A record as `measure --out` writes it, into the store of runs; its number. DataError for what is none."""
    return open_store().put(kept.run_of(kept.restored(data, "the upload"), package.version()))


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
    sides = [[one.strip() for one in name.split(",") if one.strip()] for name in request.names]
    named = [one for side in sides for one in side]
    repeated = [one for one in named if named.count(one) > 1]
    if repeated or not all(sides):
        raise InvalidInput(
            Message("Run {name} is there twice.", name=repeated[0]) if repeated else Message("A side names no run."),
            Message("Name each run once: gpuwise runs compare 11,13 12,14"),
        )
    before, after = (tuple((one, kept.find(one, store)) for one in side) for side in sides)
    comparison = compare_records([record for _, record in before], [record for _, record in after])
    return Compared(request=request, as_of=today, before=before, after=after, comparison=comparison)
