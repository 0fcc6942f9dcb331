"""Every text that a person may see, and the catalogues of their translations.

    python -m tools.messages                 the template, on standard output
    python -m tools.messages update          bring every src/gpuwise/locale/*.po up to date with the source
    python -m tools.messages add de          begin a language: an empty src/gpuwise/locale/de.po

Texts are read from the syntax tree, so that a template which reaches `Message` by a name (`text = "…" if … else "…"`,
`FACTORS[part]`) is found as well. A catalogue names files without line numbers: it changes only when a text does.
"""

from __future__ import annotations

import ast
import csv
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parent.parent / "src" / "gpuwise"
LOCALE = PACKAGE / "locale"
MARKS = {"N_": 1, "Message": 1, "about": 1, "ngettext": 2}
"""Calls that hold a text, and how many of their arguments are texts: one, or singular and plural."""
LOOKUPS = {"_": 1, "gettext": 1}
"""Calls that translate: what they are given is a text, or the name of one that is marked elsewhere."""
WIDTH = 118
DATA = {"services.csv": ("gives", "replacement", "note"), "waivers.csv": ("condition",)}
"""Columns of the bundled tables whose words are shown as they stand."""
Named = dict[str, list[ast.expr]]


class Unreadable(Exception):
    """A call gets its text in a way that nobody can follow: `file:line`."""


def extract(package: Path = PACKAGE) -> Catalog:
    """All texts of the package, each with the files that it is in. Raises Unreadable."""
    catalog = Catalog(project="gpuwise", charset="utf-8", fuzzy=False)
    for text, file in (*_of_code(package), *_of_templates(package), *_of_data(package / "data")):
        catalog.add(text, locations=[(file.relative_to(package).as_posix(), 0)])
        catalog[text].flags.clear()
    return catalog


def _of_code(package: Path) -> Iterator[tuple[Any, Path]]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    shared: Named = {}
    for tree in trees.values():
        for name, values in _assigned(tree.body).items():
            if name.isupper():
                shared.setdefault(name, []).extend(values)
    for path, tree in trees.items():
        for text in _texts_of(tree, [shared, _assigned(tree.body)], path):
            yield text, path


def _of_templates(package: Path) -> Iterator[tuple[Any, Path]]:
    for path in sorted(package.rglob("*.html")):
        for _line, text, _comments, _context in extract_from_file("jinja2", path):
            yield text, path


def _of_data(folder: Path) -> Iterator[tuple[str, Path]]:
    """Titles and reasons of the built-in workloads, and the sentences of tables."""
    path = folder / "workloads.toml"
    for workload in tomllib.loads(path.read_text(encoding="utf-8")).values():
        for text in (workload["title"], workload.get("accuracy_reason", ""), *workload.get("assumed", {}).values()):
            if text:
                yield text, path
    for name, columns in DATA.items():
        with (folder / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield from ((row[column], folder / name) for column in columns if row[column])


def _assigned(body: Iterable[ast.AST]) -> Named:
    """The values that names get in these statements, not in functions and classes within them."""
    found: Named = {}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.FunctionDef() | ast.ClassDef() | ast.Lambda() | ast.expr():
                continue
        for name, values in _assigned(ast.iter_child_nodes(node)).items():
            found.setdefault(name, []).extend(values)
    return found


def _texts_of(node: ast.AST, scopes: list[Named], path: Path) -> Iterator[Any]:
    """The texts of all calls below this node; scopes: what names mean, the outermost first."""
    if isinstance(node, ast.FunctionDef):
        scopes = [*scopes, _assigned(node.body)]
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if many := (MARKS | LOOKUPS).get(name):
            found = [list(_values(argument, scopes)) for argument in node.args[:many]]
            if name in MARKS and not all(found) and not _copies(node.args[0]):
                raise Unreadable(f"{path}:{node.lineno}: {ast.unparse(node)}")
            yield from (texts if many > 1 else texts[0] for texts in product(*found) if texts and texts[0])
    for child in ast.iter_child_nodes(node):
        yield from _texts_of(child, scopes, path)


def _copies(node: ast.expr) -> bool:
    """A text of another message, or one that was written down: `message.template`, `plain["template"]`."""
    return ast.unparse(node).endswith((".template", "]"))


def _values(node: ast.expr, scopes: Sequence[Named]) -> Iterator[str]:
    """The strings that an expression may be; nothing for what cannot be told."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*_values(one, scopes), *_values(other, scopes))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from (a + b for a, b in product(_values(left, scopes), _values(right, scopes)))
        case ast.Call(func=ast.Name(id="N_"), args=[text]):
            yield from _values(text, scopes)
        case ast.Dict(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            for value in values:
                yield from _values(value, scopes)
        case ast.Subscript(value=ast.Name() as table):
            yield from _values(table, scopes)
        case ast.Name(id=name):
            meant = next((scope[name] for scope in reversed(scopes) if name in scope), [])
            for value in meant:
                yield from _values(value, scopes)


def updated(file: BinaryIO, template: Catalog, language: str) -> Catalog:
    """A catalogue with the texts of the template: new ones empty, those that are gone left out, nothing guessed."""
    catalog = read_po(file, locale=language)
    catalog.update(template, no_fuzzy_matching=True, update_creation_date=False)
    for message in catalog:
        message.flags.clear()
    return catalog


HEADER = """{comment}
msgid ""
msgstr ""
"Language: {language}\\n"
"Plural-Forms: {plural}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""
"""Without the day of the update and the version of the tool, so that it changes only by hand."""


def write(catalog: Catalog, path: Path) -> None:
    comment, plural = catalog.header_comment.strip(), catalog.plural_forms
    with path.open("wb") as file:
        file.write(HEADER.format(comment=comment, language=catalog.locale_identifier, plural=plural).encode())
        write_po(file, catalog, width=WIDTH, ignore_obsolete=True, include_lineno=False, omit_header=True)


def missing(catalog: Catalog) -> list[str]:
    """Texts without a translation, by their (singular) text."""
    pairs = ((m.id, m.string) if isinstance(m.id, str) else (m.id[0], all(m.string)) for m in catalog if m.id)
    return [text for text, translated in pairs if not translated]


def main(arguments: list[str]) -> None:
    """See the words at the head of this file."""
    template = extract()
    match arguments:
        case []:
            write_po(sys.stdout.buffer, template, width=WIDTH, include_lineno=False)
        case ["update"]:
            for path in sorted(LOCALE.glob("*.po")):
                with path.open("rb") as file:
                    catalog = updated(file, template, path.stem)
                write(catalog, path)
                print(f"{path.name}: {len(catalog)} texts, {len(missing(catalog))} without a translation")
        case ["add", language] if not (LOCALE / f"{language}.po").exists():
            begun = Catalog(locale=language, charset="utf-8", header_comment="#", fuzzy=False)
            begun.update(template, no_fuzzy_matching=True)
            write(begun, LOCALE / f"{language}.po")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
