"""Sources are tested with the fixtures of the store: a cache folder of one's own, and the bundled facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.exports import export
from tests.store.conftest import cache_folder, facts

from gpuwise.sources.instances import Instances, instances
from gpuwise.store import package

__all__ = ["cache_folder", "facts"]


@pytest.fixture(scope="session")
def known() -> Instances:
    """The machines of the bundled facts."""
    return instances(package.offers(), package.accelerators().values())


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(row, …): an export of these rows, each as it differs from a plain one."""

    def written(*rows: dict[str, str | None], name: str = "bill.csv", separator: str = ",") -> Path:
        return export(tmp_path / name, *rows, separator=separator)

    return written
