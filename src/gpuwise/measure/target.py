"""What a person names as "module:callable", found and called: a torch model, or an error that says what is wrong."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gpuwise.errors import InvalidInput, Message, UnknownName

if TYPE_CHECKING:
    import torch

FOREIGN = (
    RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError, OSError, ArithmeticError,
    ImportError, MemoryError,
)  # fmt: skip
"""What a foreign model raises when it is built or run."""


def first_line(error: Exception) -> str:
    """The first line that an error says, or its name."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def load(target: str) -> Callable[[], object]:
    """The callable that "module:callable" names, looked for in the current folder too."""
    module_name, name = parts(target)
    module = _import(module_name, target)
    make = getattr(module, name, None)
    if make is None:
        near = get_close_matches(name, dir(module), 3)
        raise UnknownName(
            Message("{module} has no “{name}”", module=module_name, name=name),
            Message("Near it: {names}.", names=", ".join(near) or "-"),
            near,
        )
    return _without_arguments(make, target)


def parts(target: str) -> tuple[str, str]:
    """Module and name."""
    module, _, name = target.partition(":")
    if not (module and name):
        raise InvalidInput(
            Message("“{target}” does not name a model", target=target),
            Message("Write module:callable, for example torchvision.models:resnet50."),
        )
    return module, name


def need_torch() -> None:
    """Raises InvalidInput if torch is not installed; does not import it."""
    if find_spec("torch") is None:
        raise _torch_missing("torch")


def model_of(made: object, target: str) -> torch.nn.Module:
    import torch

    if not isinstance(made, torch.nn.Module):
        raise _no_module(target, type(made).__name__)
    return made


def _import(module_name: str, target: str) -> Any:
    try:
        with _current_folder():
            return importlib.import_module(module_name)
    except ImportError as error:
        if error.name in {"torch", "torchvision"}:
            raise _torch_missing(error.name) from error
        raise InvalidInput(
            Message("cannot import {module}: {error}", module=module_name, error=error),
            Message("Check the name in {target}, or run in the folder that holds the module.", target=target),
        ) from error


def _without_arguments(make: Any, target: str) -> Callable[[], object]:
    if not callable(make):
        raise _no_module(target, type(make).__name__)
    try:
        signature = inspect.signature(make)
        signature.bind()
    except TypeError as error:
        raise InvalidInput(
            Message("{target} cannot be called without arguments: {error}", target=target, error=error),
            Message("Write a function of your own that returns the model, and name that."),
        ) from error
    except ValueError:  # a callable written in C shows no signature
        return make  # type: ignore[no-any-return]
    downloads = {name: None for name, p in signature.parameters.items() if name.startswith("weights") and p.default}
    return partial(make, **downloads)


def _no_module(target: str, kind: str) -> InvalidInput:
    return InvalidInput(
        Message("{target} gives a {kind}, not a torch.nn.Module", target=target, kind=kind),
        Message("Name a function or class that returns the model when called without arguments."),
    )


def _torch_missing(name: str) -> InvalidInput:
    return InvalidInput(
        Message("counting a model needs {name}, which is not installed", name=name),
        Message("Install the extra: pip install 'gpuwise[torch]'. A TOML file can state the counts instead."),
    )


@contextmanager
def _current_folder() -> Iterator[None]:
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")
