"""The hooks on torch that see a training loop. Imported only once torch is there.

A module's forward pass is caught at the outermost call alone: a global hook that takes itself away while that call
lasts, so inner modules run as they always do and no module carries a hook of ours when it is saved, copied or
compiled. Under torch.compile every hook is empty (`is_compiling` is a constant there).
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.modules.module as modules
from torch.optim import optimizer as optimizers
from torch.utils import hooks
from torch.utils.data import dataloader, get_worker_info
from torch.utils.data._utils import fetch

from gpuwise.measure.attach.border import Border
from gpuwise.measure.attach.clock import Token
from gpuwise.measure.attach.counting import StepCount
from gpuwise.measure.attach.devices import Devices
from gpuwise.measure.attach.facts import Facts, of_arguments
from gpuwise.measure.attach.fetching import Fetching
from gpuwise.measure.attach.recorder import Recorder

Function = Callable[..., Any]
END = hooks.RemovableHandle(OrderedDict()).id
"""The key of our hook at the end of an outermost forward pass, among a module's own."""


class Loop:
    """Watches the thread that imported torch, or the one that calls backward first."""

    recorder: Recorder

    def __init__(self, border: Border, fetching: Fetching) -> None:
        self.border, self.fetching = border, fetching
        border.absent = torch.compiler.is_compiling
        self.facts = Facts()
        self._model = border("facts", self.facts.model)
        self.devices = Devices(border, self._mine)
        self.thread = threading.get_ident()
        self._hook_id = -1
        self._entry: Function | None = None
        self._in_backward = False

    def record(self, recorder: Recorder) -> None:
        """What is seen goes to this recorder from now on."""
        self.recorder = recorder
        self.facts.use(recorder.writer)
        recorder.starting = self.facts.starting
        recorder.report = self.border("report", self._report)
        recorder.counting = self.counting = StepCount(self.border, self.facts.counted)

    def install(self) -> None:
        fetching, eager = self.fetching, self.border.eager
        fetching.fetchers(fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher)
        fetching.who = self._who
        iterator = dataloader._BaseDataLoaderIter
        iterator.__next__ = self._next(iterator.__next__)  # type: ignore[method-assign]
        dataloader.DataLoader.__iter__ = self._iter(dataloader.DataLoader.__iter__)  # type: ignore[method-assign]
        self._entry = eager("forward", self._forward_begin)
        self._hook_id = modules.register_module_forward_pre_hook(self._entry).id
        self._leave_forward = eager("forward end", self._forward_end)
        torch.autograd.backward = self._backward(torch.autograd.backward)
        optimizers.register_optimizer_step_pre_hook(eager("optimizer", self._optimizer_begin))
        optimizers.register_optimizer_step_post_hook(eager("optimizer end", self._optimizer_end))
        torch.amp.GradScaler.step = self._scaler(torch.amp.GradScaler.step)  # type: ignore[method-assign]
        torch.compile = self._compile(torch.compile)

    def _mine(self) -> bool:
        return threading.get_ident() == self.thread

    def _who(self) -> int:
        """The number of this loader worker; a worker needs no hook on modules."""
        worker = get_worker_info()
        if worker is not None:
            self._pause()
        return -1 if worker is None else int(worker.id)

    def _report(self) -> None:
        self.facts.tell()
        self.devices.tell(self.recorder)

    # ---- batches ----

    def _iter(self, original: Function) -> Function:
        told = self.border("loader", self._iterating)

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:  # noqa: N807 (it takes the place of that method)
            begin = self.recorder.now()
            iterator = original(loader)
            told(begin)
            return iterator

        return __iter__

    def _iterating(self, begin: int) -> None:
        if self.recorder.on and self._mine():
            self.recorder.iterating(begin, self.recorder.now())

    def _next(self, original: Function) -> Function:
        before, after = self.border("batch", self._before_batch), self.border("batch end", self._after_batch)

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:  # noqa: N807 (it takes the place of that method)
            begin = before(iterator)
            if begin is None:
                return original(iterator)
            batch = None
            try:
                batch = original(iterator)
                return batch
            finally:
                after(begin, iterator, batch)

        return __next__

    def _before_batch(self, iterator: Any) -> int | None:
        if not self._mine():
            return None
        if not self.recorder.on:
            if self.facts.same_data(iterator):
                return None
            self.recorder.leave()
        self._pause()
        return self.recorder.wait_begin()

    def _after_batch(self, begin: int, iterator: Any, batch: Any) -> None:
        size = None if batch is None else self.facts.batch(iterator, batch)
        self.recorder.wait_end(begin, size)
        self._resume()

    # ---- forward ----

    def _pause(self) -> None:
        modules._global_forward_pre_hooks.pop(self._hook_id, None)

    def _resume(self) -> None:
        if self._entry is not None:
            modules._global_forward_pre_hooks[self._hook_id] = self._entry

    def _forward_begin(self, module: Any, args: Any) -> None:
        if not self._mine() or self._idle(module):
            return
        self._enter(module, args)
        self._pause()
        module._forward_hooks[END] = self._leave_forward
        module._forward_hooks_always_called[END] = True

    def _idle(self, module: Any) -> bool:
        """The hooks are off; validation ends that."""
        if self.recorder.on:
            return False
        if module.training or not has_weights(module):
            return True
        self.recorder.leave()
        return False

    def _enter(self, module: Any, args: Any) -> None:
        gradients = module.training and torch.is_grad_enabled()
        if not has_weights(module):
            self.recorder.push("forward")
        elif gradients:
            if self.devices.kind is None:
                self.devices.first(self.recorder, module)
            self._model(module, args)
            self.recorder.forward_begin(id(module), of_arguments(args))
        else:
            self.facts.looked()
            self.recorder.look_begin(id(module), training=module.training)
        if self.counting.mode is not None:
            self.counting.mode.forward = True

    def _forward_end(self, module: Any, args: Any, result: Any) -> None:
        module._forward_hooks.pop(END, None)
        module._forward_hooks_always_called.pop(END, None)
        self._leave()
        self._resume()

    def _leave(self) -> None:
        if self.counting.mode is not None:
            self.counting.mode.forward = False
        self.recorder.pop("forward")

    # ---- backward ----

    def _backward(self, original: Function) -> Function:
        begin, end = self.border("backward", self._backward_begin), self.border("backward end", self._backward_end)

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._in_backward or not self.recorder.on or torch.compiler.is_compiling():
                return original(tensors, *args, **kwargs)
            watch = begin(tensors)
            try:
                return original(tensors, *args, **kwargs)
            finally:
                end(watch)

        return backward

    def _backward_begin(self, tensors: Any) -> Reduction | None:
        if self.recorder.closed == 0:
            self.thread = threading.get_ident()
        if not self._mine():
            return None
        self._in_backward = True
        self._pause()
        self.recorder.backward_begin()
        return Reduction(self.recorder, tensors)

    def _backward_end(self, watch: Reduction | None) -> None:
        if watch is None:
            return
        self.recorder.backward_end(watch.computed)
        watch.remove()
        self._in_backward = False
        self._resume()

    # ---- optimizer ----

    def _optimizer_begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._mine():
            self.recorder.optimizer_begin(id(optimizer))

    def _optimizer_end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._mine():
            self.recorder.optimizer_end(id(optimizer))
            self.facts.stepped(optimizer, self.recorder.closed)

    def _scaler(self, original: Function) -> Function:
        """A step that the scaler leaves out, since a gradient is not finite, is a step nevertheless."""
        begin, end = self.border("scaler", self._optimizer_begin), self.border("scaler", self._optimizer_end)

        @functools.wraps(original)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled():
                return original(scaler, optimizer, *args, **kwargs)
            begin(optimizer, args, kwargs)
            try:
                return original(scaler, optimizer, *args, **kwargs)
            finally:
                end(optimizer, args, kwargs)

        return step

    # ---- torch.compile ----

    def _compile(self, original: Function) -> Function:
        told = self.border("compile", self._compiled)

        @functools.wraps(original)
        def compiling(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            told(args[0] if args else kwargs.get("model"))
            return result

        return compiling

    def _compiled(self, what: object) -> None:
        """A compiled module is entered by a call of its own; a compiled function may hold any module."""
        if what is None:
            return
        self.facts.compiled = True
        self.recorder.counting = None
        if not isinstance(what, torch.nn.Module):
            self._pause()
            self._entry = None
            return
        from torch._dynamo.eval_frame import OptimizedModule

        if not hasattr(OptimizedModule.__call__, "__wrapped__"):
            OptimizedModule.__call__ = self._compiled_call(OptimizedModule.__call__)  # type: ignore[method-assign]

    def _compiled_call(self, original: Function) -> Function:
        """torch warns of global hooks on a compiled module: ours is away while it runs."""
        begin, end = self.border("compiled", self._compiled_begin), self.border("compiled", self._compiled_end)

        @functools.wraps(original)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 (it takes the place of that method)
            if torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            entered = begin(module, args)
            try:
                return original(module, *args, **kwargs)
            finally:
                end(entered)

        return __call__

    def _compiled_begin(self, module: Any, args: Any) -> bool:
        outermost = self._hook_id in modules._global_forward_pre_hooks
        self._pause()
        if not outermost or not self._mine() or self._idle(module):
            return False
        self._enter(module, args)
        return True

    def _compiled_end(self, entered: bool | None) -> None:
        if entered:
            self._leave()
        if not self._in_backward and not self.recorder.inside("forward"):
            self._resume()


class Reduction:
    """When the last gradient of a backward pass was there, in a job of several processes.

    Callbacks of autograd run in the order in which they were queued: one that is queued by the very first gradient
    runs before that of DistributedDataParallel, which waits for the other ranks.
    """

    def __init__(self, recorder: Recorder, tensors: Any) -> None:
        self.computed: Token | None = None
        self._recorder = recorder
        self._handle: Any = None
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self._watch([tensors] if isinstance(tensors, torch.Tensor) else list(tensors))

    def _watch(self, tensors: list[Any]) -> None:
        loss = next((t for t in tensors if t.grad_fn is not None), None)
        if loss is not None and torch.distributed.get_world_size() > 1:
            self._handle = loss.register_hook(self._first)

    def _first(self, gradient: Any) -> None:
        torch.autograd.Variable._execution_engine.queue_callback(self._last)

    def _last(self) -> None:
        self.computed = self._recorder.clock.stamp()

    def remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()


def has_weights(module: Any) -> bool:
    """Losses and the like have neither weights nor parts."""
    return bool(module._parameters or module._modules)
