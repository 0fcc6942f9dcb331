"""What the manual says of the server is so: each address in it answers, as what its ending says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text("utf-8")
ASKED = re.findall(r"^curl '(http://127\.0\.0\.1:8765\S+)'$", PAGE, re.M)
MEDIA = {"json": "application/json", "csv": "text/csv", "md": "text/markdown", "svg": "image/svg+xml"}


def test_the_manual_has_addresses():
    assert len(ASKED) == 6


@pytest.mark.parametrize("address", ASKED)
def test_an_address_of_the_manual_answers(client, address):
    found = client.get(address.removeprefix("http://127.0.0.1:8765"))
    assert found.status_code == 200, found.text
    ending = re.search(r"\.(\w+)(?:\?|$)", address.removeprefix("http://127.0.0.1:8765"))
    assert found.headers["content-type"].startswith(MEDIA[ending[1]])
