"""What tests of training leave behind in this process is put right: the engine rounds subnormal numbers to zero."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def subnormals() -> Iterator[None]:
    """Processor state that the rest of the tests must not inherit."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
