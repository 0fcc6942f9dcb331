"""Writes docs/own-or-rent.md: python -m benchmarks.claim."""

from pathlib import Path

from benchmarks.claim.page import page

if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "own-or-rent.md").write_text(page(), "utf-8")
