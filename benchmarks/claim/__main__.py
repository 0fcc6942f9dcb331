"""Writes docs/own-or-rent.md: python -m benchmarks.claim. With --freeze, first the figures it is computed from."""

import sys
from pathlib import Path

from benchmarks.claim.frozen import freeze
from benchmarks.claim.page import page

if __name__ == "__main__":
    if "--freeze" in sys.argv:
        freeze()
    (Path(__file__).parents[2] / "docs" / "own-or-rent.md").write_text(page(), "utf-8")
