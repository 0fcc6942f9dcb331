"""What reference training shall do: a value that a person's request becomes, and that the training child reads as JSON.

Needs no torch. What is left None is chosen by the child, who knows the device and the data (`train`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Any, Literal, get_args

from gpuwise.errors import DataError, InvalidInput, Message, UnknownName
from gpuwise.measure.record import Feed
from gpuwise.model import Precision
from gpuwise.units import Fraction, Seconds

MemoryFormat = Literal["nchw", "nhwc"]
Optimizer = Literal["sgd", "adamw"]

PAINTERS: Mapping[str, str] = {"painter-light": "resnet34", "painter-heavy": "resnet101"}
"""Built-in workload -> torchvision's name of its network."""

CLASSIFIERS: tuple[str, ...] = (
    "alexnet", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny", "densenet121", "densenet161",
    "densenet169", "densenet201", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
    "efficientnet_b4", "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l",
    "efficientnet_v2_m", "efficientnet_v2_s", "googlenet", "inception_v3", "maxvit_t", "mnasnet0_5", "mnasnet0_75",
    "mnasnet1_0", "mnasnet1_3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_16gf",
    "regnet_x_1_6gf", "regnet_x_32gf", "regnet_x_3_2gf", "regnet_x_400mf", "regnet_x_800mf", "regnet_x_8gf",
    "regnet_y_128gf", "regnet_y_16gf", "regnet_y_1_6gf", "regnet_y_32gf", "regnet_y_3_2gf", "regnet_y_400mf",
    "regnet_y_800mf", "regnet_y_8gf", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50",
    "resnext101_32x8d", "resnext101_64x4d", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "squeezenet1_0", "squeezenet1_1", "swin_b", "swin_s", "swin_t",
    "swin_v2_b", "swin_v2_s", "swin_v2_t", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19",
    "vgg19_bn", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32", "wide_resnet101_2", "wide_resnet50_2",
)  # fmt: skip
"""torchvision.models.list_models(module=torchvision.models), torchvision 0.29."""

OTHER_TASKS: Mapping[str, str] = {
    "fasterrcnn": "detection", "fcos": "detection", "keypointrcnn": "detection", "maskrcnn": "detection",
    "retinanet": "detection", "ssd": "detection", "yolo": "detection", "detr": "detection",
    "deeplab": "segmentation", "fcn": "segmentation", "lraspp": "segmentation", "unet": "segmentation",
    "mc3": "video", "mvit": "video", "r2plus1d": "video", "r3d": "video", "s3d": "video", "swin3d": "video",
    "raft": "optical flow", "quantized": "quantized inference",
}  # fmt: skip
"""How the names of networks begin that do something else than naming the class of an image -> what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Reference training. Raises InvalidInput or UnknownName for a value that cannot be used.

    model: painter-light, painter-heavy, or a classifier of torchvision. data: folder or CSV file, None: paintings made
    on the spot by `painters` procedural painters. label: column of the labels, where a table has several.
    Training ends at the first of steps (optimizer steps), minutes (of
    the whole run), epochs, target_fraction (held-out accuracy reached) and patience (epochs without a better one);
    when neither steps, minutes nor epochs are given, by patience, and at the latest when the learning rate has come to
    its floor (`plan.EPOCHS`). batch: per accelerator. image_size: px a side.
    device: "cpu", "cuda:0" … What may be None beside these is then chosen for device and data (`plan`, `precision`).
    compile: torch.compile.
    cache: read from files re-encoded once. threads: of the main process.
    checkpoint: folder, written every checkpoint_every_s and at the end of an epoch; resume: go on from it.
    limits: measure what feed and device can do alone. counts: count the model's operations. stall_s: without a step for
    so long, the parent ends the run.
    """

    model: str = "painter-light"
    data: str | None = None
    label: str | None = None
    painters: int = 8
    steps: int | None = None
    minutes: float | None = None
    epochs: int | None = None
    target_fraction: Fraction | None = None
    patience: int | None = None
    batch: int | None = None
    precision: Precision | None = None
    memory_format: MemoryFormat | None = None
    compile: bool = False
    workers: int | None = None
    feed: Feed = "fast"
    cache: bool = False
    image_size: int | None = None
    optimizer: Optimizer | None = None
    learning_rate: float | None = None
    seed: int = 0
    device: str | None = None
    threads: int | None = None
    checkpoint: str | None = None
    checkpoint_every_s: Seconds = 60.0
    resume: bool = False
    limits: bool = True
    counts: bool = True
    stall_s: Seconds = 300.0

    def __post_init__(self) -> None:
        network(self.model)
        _check_choices(self)
        _check_numbers(self)
        if self.resume and self.checkpoint is None:
            raise _invalid("resume", True, Message("a checkpoint folder says where to go on"))

    @property
    def network(self) -> str:
        """torchvision's name of the model."""
        return network(self.model)

    @property
    def early_stop(self) -> bool:
        """Whether accuracy that stops growing ends the run."""
        return self.patience is not None or (self.steps, self.minutes, self.epochs) == (None, None, None)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True)


def from_json(text: str) -> Job:
    """The job that `to_json` wrote. Raises DataError for anything else than an object with the fields of Job."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            Message("the job is no JSON: {error}", error=str(error)), Message("Write it with Job.to_json.")
        ) from error
    if not isinstance(document, dict):
        raise DataError(Message("the job is no JSON object"), Message("Write it with Job.to_json."))
    return from_mapping(document)


def from_mapping(document: Mapping[str, Any]) -> Job:
    """A job from field -> value. Raises UnknownName for a field that a job does not have."""
    known = [f.name for f in fields(Job)]
    for name in document:
        if name not in known:
            raise _unknown(Message("a job has no field “{name}”", name=name), name, known)
    return Job(**document)


def network(model: str) -> str:
    """torchvision's name for `model`: a painter, or a classifier with or without "torchvision.models:" before it."""
    name = PAINTERS.get(model, model.removeprefix("torchvision.models:"))
    if name in CLASSIFIERS:
        return name
    _refuse_other_tasks(model, name.lower())
    raise _unknown(Message("no classifier is called “{name}”", name=model), model, (*PAINTERS, *CLASSIFIERS))


def _refuse_other_tasks(model: str, name: str) -> None:
    task = next((task for start, task in OTHER_TASKS.items() if name.startswith(start)), None)
    if task is not None:
        raise InvalidInput(
            Message("“{model}” is a network for {task}; reference training classifies images", model=model, task=task),
            Message("Measure your own program (gpuwise measure -- python train.py), or choose a classifier: resnet50."),
        )


def _unknown(message: Message, name: str, known: tuple[str, ...] | list[str]) -> UnknownName:
    nearest = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = Message("Did you mean {names}?", names=", ".join(nearest)) if nearest else Message("Choose a known name.")
    return UnknownName(message, hint, nearest)


def _invalid(field: str, value: object, rule: Message) -> InvalidInput:
    return InvalidInput(
        Message("{field} is {value}: {rule}", field=field, value=value, rule=rule),
        Message("Correct {field}.", field=field),
    )


CHOICES: Mapping[str, tuple[str, ...]] = {
    "precision": get_args(Precision),
    "memory_format": get_args(MemoryFormat),
    "feed": get_args(Feed),
    "optimizer": get_args(Optimizer),
}


def _check_choices(job: Job) -> None:
    for field, allowed in CHOICES.items():
        value = getattr(job, field)
        if value is not None and value not in allowed:
            raise _unknown(
                Message("{field} “{value}” is not one of {names}", field=field, value=value, names=", ".join(allowed)),
                str(value),
                allowed,
            )


def _whole(least: int) -> tuple[Callable[[Any], bool], Message]:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        Message("a whole number of at least {least} is needed", least=least),
    )


def _above(least: float) -> tuple[Callable[[Any], bool], Message]:
    return lambda value: _finite(value) and value > least, Message("a number above {least:g} is needed", least=least)


def _share(value: Any) -> bool:
    return _finite(value) and 0 < value <= 1


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


NUMBERS: Mapping[str, tuple[Callable[[Any], bool], Message]] = {
    "painters": _whole(2),
    "steps": _whole(1),
    "epochs": _whole(1),
    "patience": _whole(1),
    "batch": _whole(2),  # batch normalisation needs two samples
    "workers": _whole(0),
    "threads": _whole(1),
    "image_size": _whole(32),  # the networks halve an image five times
    "seed": _whole(0),
    "minutes": _above(0),
    "learning_rate": _above(0),
    "checkpoint_every_s": _above(0),
    "stall_s": _above(0),
    "target_fraction": (_share, Message("a share above 0 and up to 1 is needed (80 % is 0.8)")),
}


def _check_numbers(job: Job) -> None:
    for field, (right, rule) in NUMBERS.items():
        value = getattr(job, field)
        if value is not None and not right(value):
            raise _invalid(field, value, rule)
