"""The page to sign on paper: one upright sheet, whatever was asked."""

from __future__ import annotations

import re
import shutil
from datetime import date

import pytest
from click.testing import CliRunner

from gpuwise.cli import Session, program

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ASKED = (
    ("rank", "painter-heavy"),
    ("own", "--demand", "40 GPUs", "--gpu", "H100-SXM", "--provider", "aws", "--throughput", "5500 tokens/s"),
    ("own", "--demand", "0.5 GPUs", "--gpu", "A100-SXM4-80GB", "--currency", "EUR"),
)
A4_POINTS = (594.96, 841.92)


@pytest.mark.parametrize("words", ASKED, ids=lambda words: words[0])
def test_it_fits_one_upright_sheet(words, tmp_path):
    file, paper = tmp_path / "sign.html", tmp_path / "sign.pdf"
    said = CliRunner().invoke(program, (*words, "--summary", str(file)), obj=Session(today=date(2026, 12, 1)))
    assert said.exit_code == 0, said.output
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(file.as_uri())
        page.pdf(path=paper, prefer_css_page_size=True)
        chromium.close()
    assert complaints == []
    sizes = re.findall(rb"MediaBox *\[0 0 ([0-9.]+) ([0-9.]+)\]", paper.read_bytes())
    assert [tuple(map(float, size)) for size in sizes] == [pytest.approx(A4_POINTS, abs=1)]
