"""What the import contracts in pyproject.toml cannot see: calls in the core, lengths, names, what a file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gpuwise"
CORE = (
    "units", "errors", "estimate", "memory", "stopping", "model", "offer", "catalogue", "names", "workloads", "predict", "cost",
    "rank", "integrity", "request",
)  # fmt: skip
MOST_LINES_IN_A_FILE = 500
MOST_LINES_IN_A_FUNCTION = 40

IMPURE_CALLS = {
    "open", "print", "input", "breakpoint", "date.today", "datetime.now", "datetime.today", "datetime.utcnow",
    "np.load", "np.save", "np.savez", "np.loadtxt", "np.savetxt", "np.genfromtxt", "np.fromfile", "np.memmap",
}  # fmt: skip
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
# Written so that this file does not contain what it looks for.
FORBIDDEN_TEXT = {
    "a path of one machine": re.compile(r"(?:^|[\s\"'(=:`])/(?:w[o]rk|h[o]me|r[o]ot|t[m]p|U[s]ers)/", re.M),
    "the host of a package registry": re.compile(
        r"p[y]pi\.org|p[y]thonhosted\.org|registry\.n[p]mjs|deb\.d[e]bian\.org|c[r]ates\.io|proxy\.g[o]lang", re.I
    ),
    "a promise instead of work": re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b"),
}
BINARY = {".png", ".jpg", ".gz", ".npz", ".woff2"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def core_modules() -> list[Path]:
    return [p for p in modules() if p.relative_to(PACKAGE).parts[0].removesuffix(".py") in CORE]


def our_files() -> list[Path]:
    """Every file that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return [p for p in paths if p.is_file() and p.suffix not in BINARY]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def called(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every call: `datetime.date.today()` is date.today."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ".".join(ast.unparse(node.func).split(".")[-2:])


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function, docstring and decorators left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            docstring = text.count("\n") + 1 if text else 0
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


@pytest.mark.parametrize("path", core_modules(), ids=name)
def test_the_core_asks_no_clock_opens_no_file_and_prints_nothing(path: Path) -> None:
    assert [(line, call) for line, call in called(ast.parse(path.read_text("utf-8"))) if call in IMPURE_CALLS] == []


def test_every_module_named_as_core_is_there() -> None:
    assert {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in core_modules()} == set(CORE)


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_module_stays_short_and_so_does_every_function(path: Path) -> None:
    source = path.read_text("utf-8")
    assert len(source.splitlines()) <= MOST_LINES_IN_A_FILE
    assert [(n, lines) for n, lines in functions(ast.parse(source)) if lines > MOST_LINES_IN_A_FUNCTION] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name(p) for p in modules() if {p.stem, p.parent.name} & VAGUE_NAMES] == []


@pytest.mark.parametrize("kind", FORBIDDEN_TEXT)
def test_no_file_holds(kind: str) -> None:
    pattern = FORBIDDEN_TEXT[kind]
    found = [
        f"{name(p)}:{number}: {line.strip()[:100]}"
        for p in our_files()
        for number, line in enumerate(p.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
