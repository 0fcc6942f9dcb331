"""What several tests share: a small ranking made by hand, and golden files that a person reads as a diff."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwise import locale
from gpuwise.model import Ranking
from tests.pages import small_ranking

GOLDEN = Path(__file__).parent / "golden"
MOST_GOLDEN_LINES = 80


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): the text equals the file of that name, which is short enough for its diff to be read."""

    def same(name: str, text: str) -> None:
        file = GOLDEN / name
        assert text.count("\n") <= MOST_GOLDEN_LINES
        if request.config.getoption("--update-golden"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return same


@pytest.fixture(autouse=True)
def _english() -> None:
    locale.activate("en")


@pytest.fixture
def ranking() -> Ranking:
    return small_ranking()
