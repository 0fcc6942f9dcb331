"""What the manual says of the server is so: each address in it answers, as what its ending says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = "http://127.0.0.1:8765"
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text("utf-8")
ASKED = re.findall(rf"^(?:curl ')?{re.escape(ROOT)}(/[^\s']+\?[^\s']+)'?$", PAGE, re.M)
ENDINGS = re.findall(r"`\.(\w+)`", PAGE)


def test_the_manual_has_addresses_and_endings():
    assert len(ASKED) == 2
    assert {"json", "csv", "md", "html", "summary", "svg", "png"} == set(ENDINGS)


@pytest.mark.parametrize("address", ASKED)
def test_an_address_of_the_manual_answers(client, address):
    assert client.get(address).status_code == 200


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_ending_of_the_manual_is_served(client, ending):
    assert client.get(f"/rank.{ending}?workloads=painter-heavy&limit=3").status_code == 200
