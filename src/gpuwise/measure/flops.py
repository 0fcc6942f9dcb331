"""Multiply-accumulates of single torch operations, by class: conv, depthwise, matmul, attention, recurrent.

Own formulas where `torch.utils.flop_counter` (2.6 to 2.14) is silent or wrong: it knows no fused attention of the CPU,
no fused recurrent layer, no matrix-vector product and no deformable convolution, and counts the weight gradient of a
grouped convolution once for every group. What is recomputed in a backward pass (fused attention) is not counted again,
as in the usual definition of MFU (Chowdhery et al. 2022, arXiv:2204.02311, appendix B).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

KINDS = ("conv", "depthwise", "matmul", "attention", "recurrent")

Args = Sequence[Any]
Formula = Callable[[Args, Any], float]


def operation(func: Any) -> str:
    """The name of an operation without its overload, such as aten::mm."""
    return str(func.overloadpacket._qualified_op_name) if isinstance(func, torch._ops.OpOverload) else str(func)


def of(func: Any, args: Args, kwargs: Mapping[str, Any], out: Any) -> tuple[str, float] | None:
    """Class and multiply-accumulates of one call; None for an operation that moves data but multiplies nothing."""
    name = operation(func)
    if name in CONVOLUTIONS:
        return _convolution(args, out)
    if name == "aten::convolution_backward":
        return _convolution_backward(args)
    if name.startswith("aten::_scaled_dot_product_"):
        return "attention", _attention_called(name, args)
    if (known := FORMULAS.get(name)) is not None:
        return known[0], known[1](args, out)
    return _registered(func, name, args, kwargs, out)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> float:
    """Of one forward pass: the full square, masked or not. The backward pass is twice this."""
    return float(prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1]))


def _attention_called(name: str, args: Args) -> float:
    if "backward" in name:
        return 2 * attention(*args[1:4])
    return attention(*args[:3])


CONVOLUTIONS = {
    "aten::convolution", "aten::_convolution", "aten::convolution_overrideable", "aten::cudnn_convolution",
    "aten::_slow_conv2d_forward",
}  # fmt: skip


def _convolution(args: Args, out: torch.Tensor) -> tuple[str, float]:
    """args: input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    transposed, groups = (args[6], args[8]) if len(args) > 8 else (False, 1)
    return _class(args[0], groups), _positions(args[0] if transposed else out) * args[1].numel()


def _convolution_backward(args: Args) -> tuple[str, float]:
    """args: gradient, input, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups, mask.
    The gradient of the input and that of the weight each cost as much as the forward pass."""
    grad, data, weight, transposed, groups, mask = args[0], args[1], args[2], args[7], args[9], args[10]
    once = _positions(data if transposed else grad) * weight.numel()
    return _class(data, groups), float(once * (mask[0] + mask[1]))


def _positions(tensor: torch.Tensor) -> float:
    """Places at which the filters are laid on: samples × height × width (any number of dimensions)."""
    return float(tensor.numel() / tensor.shape[1]) if tensor.numel() else 0.0


def _class(data: torch.Tensor, groups: int) -> str:
    return "depthwise" if groups > 1 and groups == data.shape[1] else "conv"


def _product(args: Args, out: Any) -> float:
    """mm, bmm: every element of the first matrix meets every column of the second."""
    return float(args[0].numel() * args[1].shape[-1])


def _added_product(args: Args, out: Any) -> float:
    return float(args[1].numel() * args[2].shape[-1])


def _recurrent_cpu(args: Args, out: Any) -> float:
    """oneDNN layer: input (time × batch × features), then the two weight matrices."""
    return _positions_in_time(args[0]) * float(args[1].numel() + args[2].numel())


def _recurrent_cpu_backward(args: Args, out: Any) -> float:
    return 2 * _recurrent_cpu(args, out)


def _recurrent_cuda(args: Args, out: Any) -> float:
    """cuDNN or MIOpen, all layers at once: the matrices among the weights (biases have one dimension)."""
    return _positions_in_time(args[0]) * float(sum(w.numel() for w in args[1] if w.dim() > 1))


def _recurrent_cuda_backward(args: Args, out: Any) -> float:
    return 2 * _recurrent_cuda(args, out)


def _positions_in_time(data: torch.Tensor) -> float:
    return float(data.numel() / data.shape[-1])


def _deformable(args: Args, out: torch.Tensor) -> float:
    """torchvision: input, weight (out × in / groups × height × width), offsets …"""
    return _positions(out) * float(args[1].numel())


def _deformable_backward(args: Args, out: Any) -> float:
    return 2 * _positions(args[0]) * float(args[2].numel())


FORMULAS: Mapping[str, tuple[str, Formula]] = {
    "aten::mm": ("matmul", _product),
    "aten::bmm": ("matmul", _product),
    "aten::addmm": ("matmul", _added_product),
    "aten::baddbmm": ("matmul", _added_product),
    "aten::addbmm": ("matmul", _added_product),
    "aten::_addmm_activation": ("matmul", _added_product),
    "aten::mv": ("matmul", lambda args, out: float(args[0].numel())),
    "aten::addmv": ("matmul", lambda args, out: float(args[1].numel())),
    "aten::dot": ("matmul", lambda args, out: float(args[0].numel())),
    "aten::addr": ("matmul", lambda args, out: float(out.numel())),
    "aten::mkldnn_rnn_layer": ("recurrent", _recurrent_cpu),
    "aten::mkldnn_rnn_layer_backward": ("recurrent", _recurrent_cpu_backward),
    "aten::_cudnn_rnn": ("recurrent", _recurrent_cuda),
    "aten::_cudnn_rnn_backward": ("recurrent", _recurrent_cuda_backward),
    "aten::miopen_rnn": ("recurrent", _recurrent_cuda),
    "aten::miopen_rnn_backward": ("recurrent", _recurrent_cuda_backward),
    "torchvision::deform_conv2d": ("conv", _deformable),
    "torchvision::_deform_conv2d_backward": ("conv", _deformable_backward),
}


def _registered(func: Any, name: str, args: Args, kwargs: Mapping[str, Any], out: Any) -> tuple[str, float] | None:
    """By torch's own formula, which is in FLOPs and, of attention, counts five products backward instead of four."""
    formula = flop_registry.get(getattr(func, "overloadpacket", func))
    if formula is None:
        return None
    macs = float(formula(*args, **kwargs, out_val=out)) / 2
    if "attention" not in name:
        return "matmul", macs
    return "attention", macs * (0.8 if "backward" in name else 1.0)


MULTIPLY_NOTHING = {"aten", "prim", "prims", "profiler", "c10d", "_c10d_functional", "torchvision"}


def unknown(func: Any) -> bool:
    """An operation of somebody else's, of which only its maker knows how much it multiplies."""
    return operation(func).partition("::")[0] not in MULTIPLY_NOTHING


def launches(func: Any) -> bool:
    """Whether an operation makes the device do something: a view or an empty tensor does not."""
    name = operation(func).partition("::")[2]
    return not (getattr(func, "is_view", False) or "empty" in name or name in WITHOUT_WORK)


WITHOUT_WORK = {"_unsafe_view", "_reshape_alias", "lift_fresh", "resize_", "set_", "detach_", "expand", "result_type"}
