"""Sources of other packages: found by entry point, and never able to break what does not ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from gpuwise.errors import InvalidInput, UnknownName
from gpuwise.plugins import attempt, others, source
from gpuwise.sources import Source
from gpuwise.sources.file import FileSource
from gpuwise.sources.gpuhunt import GpuhuntSource
from gpuwise.store.facts import Facts

MODULE = """
from gpuwise.catalogue import from_rows
from gpuwise.sources import Loaded

class Mine:
    def load(self, facts, as_of):
        row = {"provider": "mine", "accelerator": "t4", "accelerators": 1.0, "price_usd_per_hour": 1.0}
        return Loaded(catalogue=from_rows("mine", "1", [row]))

class Broken:
    def __init__(self):
        raise RuntimeError("out of order")
"""
ENTRIES = """[gpuwise.sources]
mine = their_source:Mine
broken = their_source:Broken
gone = their_source:Gone
package = their_source:Mine
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with three sources lies on the path."""
    (tmp_path / "their_source.py").write_text(MODULE)
    metadata = tmp_path / "their_source-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-source\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    others.cache_clear()
    yield
    others.cache_clear()


def test_our_sources_are_found_by_name_without_a_search() -> None:
    assert len(source("package").load(Facts(accelerators={}), date(2026, 11, 30)).catalogue) > 1000
    assert isinstance(source("file"), FileSource)
    assert isinstance(source("gpuhunt"), GpuhuntSource)


@pytest.mark.usefixtures("installed")
def test_a_source_of_another_package_is_used_like_ours() -> None:
    theirs: Source = source("mine")
    assert len(theirs.load(Facts(accelerators={}), date(2026, 11, 30)).catalogue) == 1


@pytest.mark.usefixtures("installed")
def test_a_broken_source_is_one_warning_and_cannot_take_our_names() -> None:
    made, warnings = others()
    assert set(made) == {"mine"}
    assert sorted(str(w) for w in warnings) == [
        "the source broken does not work (RuntimeError: out of order)",
        "the source gone does not work (AttributeError: module 'their_source' has no attribute 'Gone')",
    ]
    with pytest.raises(InvalidInput, match="the source broken does not work"):
        source("broken")


@pytest.mark.usefixtures("installed")
def test_an_unknown_source_names_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match=r'There is no source "nine"\. Known: package, file, gpuhunt, mine'):
        source("nine")


def test_an_attempt_gives_the_value_or_what_was_raised() -> None:
    assert attempt(lambda: 3) == 3
    assert isinstance(attempt(lambda: 1 // 0), ZeroDivisionError)
    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
