"""Draws rank.svg, the picture in the README: the first lines of a real answer as a terminal shows them.

The day is fixed, so the picture changes only with the data or the code. The SVG loads no font from elsewhere.
"""

from __future__ import annotations

import io
import re
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gpuwise import faces
from gpuwise.render.text import text
from gpuwise.request import RankRequest

PICTURE = Path(__file__).parent / "rank.svg"
DAY = date(2026, 11, 30)
WIDTH, LINES, ROWS = 120, 26, 9
FONT_FROM_ELSEWHERE = re.compile(r"\s*@font-face \{.*?\}\n", re.S)


def main() -> None:
    answer = faces.rank(RankRequest(workloads=("painter-heavy",), limit=ROWS), today=DAY)
    shown = text(answer.page(), width=WIDTH, colour=True).splitlines()[:LINES]
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True)
    console.print(Text.from_ansi("\n".join(["$ gpuwise rank painter-heavy", "", *shown, "..."])))
    svg = console.export_svg(title="gpuwise", unique_id="gpuwise")
    PICTURE.write_text(FONT_FROM_ELSEWHERE.sub("", svg).replace("Fira Code, ", ""), "utf-8")


if __name__ == "__main__":
    main()
