"""Writes docs/article.md: python -m benchmarks.founding."""

from pathlib import Path

from benchmarks.founding.page import page

if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "article.md").write_text(page(), "utf-8")
