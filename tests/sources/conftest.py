"""Every test has a cache folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwise.store import package
from gpuwise.store.facts import Facts


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPUWISE_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def facts() -> Facts:
    return package.facts()
