"""What the running program tells about itself: model, batch, precision, loader, versions. Needs torch.

Each fact is taken where it passes by; the event `setup` holds those known so far.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch

from gpuwise.measure.attach.counting import NAMES, Counted
from gpuwise.measure.attach.fetching import affinity
from gpuwise.meter import Writer

MOST_SHAPES = 50
DEFAULT_SEED = 67280421310721
"""What torch.initial_seed() says where the program set none."""
TOLD_AFTER = 3
PICTURE_CHANNELS = (1, 3, 4)


class Facts:
    compiled = False

    def __init__(self) -> None:
        self._setup: dict[str, Any] = {}
        self._told: dict[str, Any] = {}
        self._shapes: set[torch.Size] = set()
        self._current: Any = None
        self._training: int | None = None
        self._parameters: int | None = None
        self._weights: torch.dtype | None = None
        self._autocast: torch.dtype | None = None
        self._kind = "cpu"
        self._counted = False
        self._size = (-1, -1)

    def use(self, writer: Writer) -> None:
        self.writer = writer

    def starting(self) -> dict[str, str]:
        """Versions; and the rank, if the program gave itself one."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.writer.rank, self.writer.world = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.writer.event("affinity", cpus=affinity(), when="loop")
        versions = {"torch": torch.__version__, "cuda": torch.version.cuda or "", "rocm": torch.version.hip or ""}
        for name in ("torchvision", "lightning", "pytorch_lightning", "transformers", "accelerate", "timm", "numpy"):
            versions[name] = getattr(sys.modules.get(name), "__version__", "")
        return {name: str(version) for name, version in versions.items() if version}

    # ---- loader ----

    def same_data(self, iterator: Any) -> bool:
        return id(iterator._dataset) == self._training

    def batch(self, iterator: Any, batch: Any) -> tuple[int, int]:
        """Its samples and tokens; a shape that was not met before becomes an event."""
        self._current = iterator
        first = leading(batch)
        if first is None:
            return (-1, -1)
        if first.shape not in self._shapes:
            self._new_shape(first.shape)
        self._size = size_of(batch, getattr(iterator._index_sampler, "batch_size", None), first)
        return self._size

    def _new_shape(self, shape: torch.Size) -> None:
        if len(self._shapes) < MOST_SHAPES:
            self._shapes.add(shape)
            self.writer.event("shape", shape=list(shape))

    def looked(self) -> None:
        """The last batch met a pass without gradients."""
        iterator = self._current
        if iterator is not None and id(iterator._dataset) != self._training and "samples" in self._setup:
            self._setup.setdefault("validation_samples", length(iterator._dataset))

    def _loader(self) -> None:
        iterator = self._current
        if iterator is None or self._training is not None:
            return
        self._training = id(iterator._dataset)
        self._setup.update(
            data=type(iterator._dataset).__name__,
            samples=length(iterator._dataset),
            workers=iterator._num_workers,
            prefetch=getattr(iterator, "_prefetch_factor", None),
            pinned=bool(iterator._pin_memory),
        )

    # ---- model ----

    def model(self, module: Any, args: Any) -> None:
        """Of the first module that trains; its precision as autocast says it in the first steps."""
        if not self._told:
            if torch.is_autocast_enabled(self._kind):
                self._autocast = torch.get_autocast_dtype(self._kind)
            if self._parameters is None:
                self._first_model(module, args)
            self._loader()

    def _first_model(self, module: Any, args: Any) -> None:
        inner = getattr(module, "module", module)
        inner = getattr(inner, "_orig_mod", inner)
        parameter = next(inner.parameters(), None)
        if parameter is None:
            return
        self._weights, self._kind = parameter.dtype, parameter.device.type
        self._parameters = sum(p.numel() for p in inner.parameters())
        self._setup["model"] = type(inner).__name__
        samples, _ = self._size if self._current is not None else of_arguments(args)
        self._setup["batch_per_accelerator"] = samples if samples > 0 else None
        first = first_tensor(args)
        if first is None:
            return
        if first.ndim == 4 and first.shape[1] in PICTURE_CHANNELS:
            last = not first.is_contiguous() and first.is_contiguous(memory_format=torch.channels_last)
            self._setup.update(image_size=int(first.shape[-1]), memory_format="nhwc" if last else "nchw")
        if self._current is None:
            self._new_shape(first.shape)

    def stepped(self, optimizer: Any, closed: int) -> None:
        self._setup.setdefault("optimizer", type(optimizer).__name__)
        if closed >= TOLD_AFTER and not self._told:
            self.tell()

    # ---- what is told ----

    def counted(self, mode: Counted, samples: int) -> None:
        """The operations of one optimizer step of this rank, and of the job; refused where some have no formula."""
        self._counted = True
        kind = max(mode.by_type, key=lambda name: mode.by_type[name], default=None)
        if kind in ("fp16", "bf16") and self._autocast is None and self._weights == torch.float32:
            self._autocast = next(dtype for dtype, name in NAMES.items() if name == kind)
        work: dict[str, Any] = {"parameters_m": (self._parameters or 0) / 1e6 or None}
        if mode.missing or not mode.flops:
            work["missing"] = sorted(mode.missing)
        else:
            work["flops_per_step"] = float(mode.flops * self.writer.world)
            if samples > 0:
                work["gmacs"] = mode.forward_flops / 2 / samples / 1e9
                work["activations_m"] = mode.written / samples / 1e6
        self.writer.event("work", **work)
        self.writer.event("launches", operations=mode.operations)

    def precision(self) -> str | None:
        if self._autocast is not None:
            return "amp" if self._autocast == torch.float16 else "amp_bf16"
        if self._weights == torch.bfloat16:
            return "bf16"
        if self._weights != torch.float32:
            return None
        tf32 = self._kind == "cuda" and torch.get_float32_matmul_precision() != "highest"
        return "tf32" if tf32 or (self._kind == "cuda" and torch.backends.cuda.matmul.allow_tf32) else "fp32"

    def tell(self) -> None:
        """The event `setup`, whenever it holds something new."""
        if self._parameters is None:
            return
        seed = torch.initial_seed()
        setup = {
            **self._setup,
            "precision": self.precision(),
            "compiled": self.compiled,
            "processes": self.writer.world,
            "threads": torch.get_num_threads(),
            "seed": None if seed == DEFAULT_SEED or seed >= 2**63 else seed,
        }
        if setup != self._told:
            self._told = setup
            self.writer.event("setup", **setup)
            if not self._counted:
                self.writer.event("work", parameters_m=self._parameters / 1e6)


def leading(batch: Any) -> torch.Tensor | None:
    """`first_tensor`, by the short way that most batches take."""
    first = batch[0] if type(batch) in (tuple, list) and batch else batch
    return first if isinstance(first, torch.Tensor) else first_tensor(batch)


def size_of(batch: Any, nominal: int | None, first: torch.Tensor) -> tuple[int, int]:
    """Samples and tokens by the first tensor of a batch, -1 where unknown. nominal: the loader's batch, which decides
    where the first tensor may be one sample of many."""
    if first.ndim == 0:
        return (-1, -1)
    samples = first.shape[0]
    if nominal is not None and samples != nominal:
        nested = batch[0] if isinstance(batch, tuple | list) and batch else ()
        many = [len(part) for part in (batch, nested) if listed(part)]
        samples = next((count for count in many if count == nominal), samples)
    return (samples, first.numel() if first.ndim == 2 and first.dtype == torch.int64 else -1)


def of_arguments(args: Any) -> tuple[int, int]:
    """The same of what a module is called with."""
    first = leading(args)
    return (-1, -1) if first is None else size_of(args, None, first)


def listed(part: object) -> bool:
    return isinstance(part, tuple | list) and all(isinstance(item, torch.Tensor | Mapping) for item in part)


def first_tensor(batch: Any, depth: int = 3) -> torch.Tensor | None:
    """Token ids of a mapping before all else, then the first tensor in the order of the batch."""
    if isinstance(batch, torch.Tensor):
        return batch
    if depth == 0:
        return None
    if isinstance(batch, Mapping):
        ids = batch.get("input_ids")
        parts = [ids] if isinstance(ids, torch.Tensor) else list(batch.values())
    else:
        parts = list(batch) if isinstance(batch, tuple | list) else []
    return next((found for part in parts[:3] if (found := first_tensor(part, depth - 1)) is not None), None)


def length(dataset: Any) -> int | None:
    """Samples of a dataset that knows it."""
    return len(dataset) if hasattr(type(dataset), "__len__") else None
