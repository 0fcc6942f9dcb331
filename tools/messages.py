"""Every text that a person may see, as a gettext template: `python -m tools.messages [FILE]`.

A translator starts from it: `pybabel init -i FILE -l zh_CN -o src/gpuwise/locale/zh_CN.po`. It is never committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po

PACKAGE = Path(__file__).parent.parent / "src" / "gpuwise"
METHODS = [("**.py", "python"), ("**.html", "jinja2")]
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2), "Message": (1,), "about": (1,)}


def extract(package: Path = PACKAGE) -> Catalog:
    """All texts of the package, with file and line."""
    catalog = Catalog(project="gpuwise", charset="utf-8", fuzzy=False)
    found = extract_from_dir(package, METHODS, keywords=KEYWORDS, comment_tags=("translators:",))
    for file, line, text, comments, context in found:
        catalog.add(text, None, [(file, line)], auto_comments=comments, context=context)
    return catalog


def main(arguments: list[str]) -> None:
    """Writes the template to the file, or to standard output."""
    if arguments:
        with Path(arguments[0]).open("wb") as file:
            write_po(file, extract(), width=120)
    else:
        write_po(sys.stdout.buffer, extract(), width=120)


if __name__ == "__main__":
    main(sys.argv[1:])
