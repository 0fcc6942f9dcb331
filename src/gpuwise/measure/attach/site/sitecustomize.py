"""Python imports this by itself where its folder is on PYTHONPATH; then any other sitecustomize has its turn.

It does nothing unless GPUWISE_MARKS is set, and takes its folder out of sys.path again.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

HERE = os.path.dirname(os.path.abspath(__file__))
ATTACH = os.path.dirname(HERE)
METER = os.path.join(os.path.dirname(os.path.dirname(ATTACH)), "meter.py")


def load(name: str, path: str, folders: list[str] | None = None) -> None:
    """Loads a module from its file, under its name in gpuwise, whether or not gpuwise is installed."""
    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def attach() -> None:
    load("gpuwise.meter", METER)
    load("gpuwise.measure.attach", os.path.join(ATTACH, "__init__.py"), [ATTACH])
    from gpuwise.measure.attach.install import install

    install()


def note(error: Exception) -> None:
    """The reason why nothing is seen, for who measures."""
    path = os.path.join(os.environ["GPUWISE_MARKS"], f"0-{os.getpid()}.marks")
    text = repr(error).replace("\\", "/").replace('"', "'")
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f'{{"event": "hook", "t": 1, "name": "attach", "failure": "{text}"}}\n')
    except OSError:
        return


def go_on() -> None:
    """Lets another sitecustomize run, as it would have without this one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != HERE]
    mine = sys.modules.pop("sitecustomize", None)
    try:
        import_module("sitecustomize")  # another one, now that this folder is off the path
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if mine is not None:
            sys.modules.setdefault("sitecustomize", mine)


if os.environ.get("GPUWISE_MARKS"):
    try:
        attach()
    except Exception as error:  # noqa: BLE001 (the border to a person's program: it runs whatever happens here)
        note(error)
    go_on()
