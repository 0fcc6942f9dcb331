"""Why a prediction is what it is, in sentences: measured rows, then factors that multiply to the rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from gpuwise.errors import Message
from gpuwise.model import Prediction, Refusal
from gpuwise.predict.answer import Told
from gpuwise.predict.evidence import Row
from gpuwise.predict.gp import OWN_WAYS
from gpuwise.predict.roofline import rates
from gpuwise.predict.setting import Setting

NO_FACTOR = 1e-9
"""Logarithm below which a factor is 1."""

MOST_ROWS = 3
"""Measured rows that are named: those that the answer follows most."""

FACTORS = {
    "sheet": "× {factor:.3g} by how rates follow the figures of data sheets",
    "architecture": "× {factor:.3g} by what {architecture} cards reach in {arithmetic}",
    "card": "× {factor:.3g} by what {card} reaches",
    "network": "× {factor:.3g} by what networks with such counts reach",
    "software": "× {factor:.3g} for software and memory format",
    OWN_WAYS: "× {factor:.3g} by the measured rows of the job itself",
}
"""Part of a prediction -> sentence. With the first line they multiply to the rate of one device."""


def in_words(told: Told, setting: Setting, rows: Sequence[Row]) -> tuple[Message, ...]:
    """The rows it follows, then every factor."""
    if told.apart:
        return tuple(_rows(told, setting, rows))
    return (*_rows(told, setting, rows), *_factors(told, setting), *_notes(told, setting))


def _rows(told: Told, setting: Setting, rows: Sequence[Row]) -> Iterator[Message]:
    """Those that the answer follows most, of the mode that is asked for first."""
    every = sorted(zip(told.pull, rows, strict=False), key=lambda pair: _place(pair[1], pair[0], setting))
    for _pull, row in every[:MOST_ROWS]:
        run = row.result
        batch = Message("{precision}, batch {batch}", precision=run.precision, batch=run.batch_per_accelerator)
        how = Message("{one}, {other}", one=batch, other=run.memory_format) if run.memory_format else batch
        yield Message(
            INFERENCE if run.mode == "infer" else TRAINING,
            rate=run.samples_per_s,
            model=run.workload,
            n=run.accelerators,
            accelerator=run.accelerator,
            how=how,
            software=run.software or Message("software not stated"),
            source=run.source.ref,
        )


TRAINING = "{rate:.4g} samples/s of {model} measured on {n} × {accelerator} ({how}, {software}; {source})"
INFERENCE = "{rate:.4g} samples/s of {model} measured in inference on {n} × {accelerator} ({how}, {software}; {source})"


def _place(row: Row, pull: float, setting: Setting) -> tuple[bool, bool, float]:
    """Own runs first, then the mode that is asked for, then by weight."""
    return not row.yours, row.result.mode != setting.mode, -abs(pull)


def _factors(told: Told, setting: Setting) -> Iterator[Message]:
    card = setting.accelerator
    text = "{rate:.4g} samples/s by counted work on the data sheet of {name}, at batch {batch}"
    yield Message(text, rate=told.nominal_per_s, name=card.name, batch=setting.batch)
    kind = setting.arithmetic
    for part, factor in told.factors.items():
        if abs(log(factor)) > NO_FACTOR:
            values = {"factor": factor, "card": card.id, "architecture": card.architecture, "arithmetic": kind}
            yield Message(FACTORS[part], **values)
    if told.limit < 1:
        text = "× {factor:.3g}: no faster than the data sheet of {name} allows"
        yield Message(text, factor=told.limit, name=card.name)


def _notes(told: Told, setting: Setting) -> Iterator[Message]:
    card = setting.accelerator
    on = rates(card, setting.arithmetic)
    if on is not None and not on.tensor and setting.precision != "fp32":
        yield Message("{name} has no tensor cores: it computes at its fp32 rate", name=card.name)
    if not told.situation.card_known:
        yield Message("{name} is in no measured table: it is known by its data sheet", name=card.name)
    if told.disagree:
        yield Message("your runs disagree with each other, or with the published rows: the interval is wider")


def spread_in_words(
    found: Sequence[Prediction], refused: Sequence[Refusal], widest: Prediction, middle: float
) -> tuple[Message, ...]:
    """Of a range over several variants."""
    names = ", ".join(p.platform for p in found)
    return (
        Message("the offer does not say which of {names} it is: the range covers all of them", names=names),
        *(Message("left out of the range: {name}, {reason}", name=r.platform, reason=r.reason) for r in refused),
        *widest.evidence,
        Message(
            "× {factor:.3g} from {name} to the middle of the range",
            factor=middle / widest.throughput_per_s.value,
            name=widest.platform,
        ),
    )
