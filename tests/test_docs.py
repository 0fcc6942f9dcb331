"""The documentation is tested: its console blocks run, its links lead somewhere, and its reference is complete.

A block fenced as `console` is run, command by command, in an empty folder a page; where it shows output, the output
must match (`...` stands for anything). A block fenced as `sh` is for people only. A code block whose caption is a file
name is written to that file first. `pytest --update-golden` writes shown output anew.
"""

from __future__ import annotations

import dataclasses
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest
from benchmarks.founding import page as article

from gpuwise import errors, faces
from gpuwise.catalogue import as_days
from gpuwise.model import Machine, Measurement, Ranking, Workload
from gpuwise.rank import Quota
from gpuwise.render.data import csv_text, ranking_document
from gpuwise.request import ExitRequest, OwnRequest, RankRequest, parse
from gpuwise.sources import focus_rows, watch
from gpuwise.store import package
from gpuwise.store.tables import ALIASES, COLUMNS
from gpuwise.view.page import Table
from gpuwise.view.ranking import ranking_page
from gpuwise.view.vocabulary import RULES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gpuwise"
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*(p for p in DOCS.rglob("*.md") if "_build" not in p.parts), *ROOT.glob("*.md")])

FENCE = re.compile(
    r"^```(?:\{code-block\} )?(?P<kind>\w+)\n(?::caption: (?P<file>\S+)\n+)?(?P<body>.*?)^```$", re.M | re.S
)
ANY_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.M)
BY_THE_PRODUCT = {"source", "reasons", "stop", "undecided", "memory"}
"""Fields that a file does not state: the reader fills them in."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(page: str) -> str:
    return (REFERENCE / page).read_text("utf-8")


def prose(page: Path) -> str:
    return ANY_FENCE.sub("", page.read_text("utf-8"))


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Each `$ command` of a console block (continued by a final backslash) with the output shown under it."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, output = re.sub(r"\\\n *", "", part).partition("\n")
        yield command, output.strip("\n")


def run(command: str, folder: Path, last_exit_code: int) -> subprocess.CompletedProcess[str]:
    """One command in bash, where `gpuwise` is this very code and `$?` is the exit code of the command before."""
    script = f'gpuwise() {{ "{sys.executable}" -m gpuwise "$@"; }}\n(exit {last_exit_code})\n{command}'
    private = {v: str(folder / ".private") for v in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    environment = os.environ | private | {"COLUMNS": "90", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    shell = ["bash", "-c", script]
    return subprocess.run(shell, cwd=folder, env=environment, encoding="utf-8", capture_output=True, timeout=120)


def matches(shown: str, real: str) -> bool:
    """Is the shown output the real one? Trailing blanks do not count; `...` stands for anything."""
    tidy = "\n".join(line.rstrip() for line in real.strip("\n").splitlines())
    return re.fullmatch(".*".join(re.escape(piece) for piece in shown.split("...")), tidy, re.S) is not None


def renewed(shown: str, real: str) -> str:
    """The shown output anew, where it is the first lines of the real one and then `...`; else as it was."""
    *head, last = shown.splitlines()
    if last != "..." or not head or "..." in "".join(head):
        return shown
    return "\n".join([*(line.rstrip() for line in real.strip("\n").splitlines()[: len(head)]), last])


def anchors(page: Path) -> set[str]:
    """The anchors that MyST and the usual forges make of a page's headings."""
    titles = HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def rules() -> set[str]:
    """The exclusion rules that the code of `rank` makes."""
    made = re.compile(r"(?:\bRule\(\s*name=|\bonly\(|_range_rule\(\s*)\"(\w+)\"")
    return {rule for path in (PACKAGE / "rank").glob("*.py") for rule in made.findall(path.read_text("utf-8"))}


def keys(value: object, *, but: Sequence[str] = ()) -> set[str]:
    """Every key in a document, except what stands under the keys in `but` and the reasons of what is null."""
    if isinstance(value, Mapping):
        own = {k for k in value if not k.endswith("_reason")}
        return own.union(*(keys(v, but=but) for k, v in value.items() if k not in but))
    return set().union(*(keys(v, but=but) for v in value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text("utf-8")], ids=name)
def test_the_commands_on_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text, previous = page.read_text("utf-8"), ("", 0)
    for block in FENCE.finditer(text):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["body"], "utf-8")
        if block["kind"] != "console":
            continue
        for command, shown in commands(block["body"]):
            assert previous[1] == 0 or command == "echo $?", f"`{previous[0]}` ended with {previous[1]}"
            done = run(command, tmp_path, previous[1])
            previous, printed = (command, done.returncode), done.stdout + done.stderr
            if shown and request.config.getoption("--update-golden"):
                fresh = renewed(shown, printed)
                text, shown = text.replace(f"\n{shown}\n", f"\n{fresh}\n"), fresh
            assert not shown or matches(shown, printed), f"{command}\n{printed}"
    assert previous[1] == 0, f"`{previous[0]}` ended with {previous[1]}"
    if text != page.read_text("utf-8"):
        page.write_text(text, "utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_on_a_page_leads_somewhere(page: Path) -> None:
    for link in LINK.finditer(prose(page)):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(other), f"#{anchor} is not a heading of {name(other)}"


def test_the_page_of_commands_and_options_is_what_the_code_says() -> None:
    made = runpy.run_path(str(DOCS / "generate.py"))
    assert read("commands.md") == made["commands_page"](), "run `make docs` and commit the page"


def test_the_page_of_accuracy_shows_the_bundled_figures() -> None:
    made = runpy.run_path(str(DOCS / "generate.py"))
    assert read("../method/accuracy.md") == made["accuracy_page"](package.accuracy()), "run `make docs`"


def test_the_page_of_the_founding_article_is_what_the_product_answers() -> None:
    assert read("../article.md") == article.page(), "run `make docs` and look at the difference"


def test_the_page_of_exclusions_names_every_rule_and_no_other() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", read("exclusions.md"), re.M)) == set(RULES) - {"offers"}
    assert rules() <= set(RULES)


def test_every_exit_code_is_in_the_reference() -> None:
    codes = {e.exit_code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.GpuwiseError)}
    assert {f"| {code} |" for code in (codes | {0, 130})} <= set(re.findall(r"^\| \d+ \|", read("exit-codes.md"), re.M))


def test_every_column_of_the_csv_of_rank_is_in_the_reference(ranking: Ranking) -> None:
    blocks = ranking_page(ranking, RankRequest(workloads=("painter-heavy",))).blocks
    header = csv_text(next(b for b in blocks if isinstance(b, Table))).splitlines()[0].split(",")
    told = {word for row in re.findall(r"^\| (`.*?`) \|", read("csv.md"), re.M) for word in re.findall(r"`(\w+)`", row)}
    assert {re.sub(r"_(low|high)$", "", column) for column in header} == told


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_of_an_offer_is_in_the_reference(column: str) -> None:
    assert f"| `{column}` |" in read("offers-csv.md")


def test_every_other_header_of_an_offer_is_in_the_reference() -> None:
    table = read("offers-csv.md").split("## Other headers")[1].lower()
    assert [alias for alias in ALIASES if not re.search(rf"[| ]{alias}[ ,]", table)] == []


@pytest.mark.parametrize(
    ("chapter", "kind"),
    [("Machines", Machine), ("Quotas", Quota), ("Workloads", Workload), ("Measured runs", Measurement)],
)
def test_every_key_of_a_file_is_in_the_reference(chapter: str, kind: type) -> None:
    text = read("files.md").split(f"\n## {chapter}\n")[1].split("\n## ")[0]
    stated = [f.name for f in dataclasses.fields(kind) if f.name not in BY_THE_PRODUCT]
    assert [key for key in stated if not re.search(rf"`{key}`|^{key} = ", text, re.M)] == []


def test_every_key_of_the_answer_to_rank_is_in_the_reference(ranking: Ranking) -> None:
    document = ranking_document(ranking, RankRequest(workloads=("painter-heavy",)))
    written = keys(document, but=("request", "workloads", "excluded_by_rule", "sources"))
    assert written - set(re.findall(r"`(\w+)`", read("json.md"))) == set()


@pytest.fixture(scope="session")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bill that the page about leaving shows."""
    page = (DOCS / "how-to" / "leave-the-cloud.md").read_text("utf-8")
    (body,) = (block["body"] for block in FENCE.finditer(page) if block["file"] == "usage.csv")
    path = tmp_path_factory.mktemp("bill") / "usage.csv"
    path.write_text(body, "utf-8")
    return path


DAY = date(2026, 12, 1)
TOLD_ELSEWHERE = ("request", "figures", "refused", "servers", "gpus_rented", "wait_usd", "service")


@pytest.fixture
def teams(tmp_path: Path) -> Path:
    path = tmp_path / "teams.csv"
    path.write_text("hour,each,apart\n0,8,0\n1,0,8\n", "utf-8")
    return path


@pytest.mark.parametrize("key", ["own", "teams", "exit", "services"])
def test_every_key_of_the_answers_about_owning_is_in_the_reference(key: str, usage: Path, teams: Path) -> None:
    committed = {"committed-until": "2027-06-30=12000USD", "data-size": "100TB"}
    asked = {
        "own": lambda: faces.own(
            parse(OwnRequest, {"demand": "40 GPUs", "gpu": "H100-SXM", "data-size": "100TB"}), today=DAY
        ),
        "teams": lambda: faces.own(parse(OwnRequest, {"record": str(teams), "gpu": "H100-SXM"}), today=DAY),
        "exit": lambda: faces.exit(parse(ExitRequest, {"files": [str(usage)], **committed}), today=DAY),
        "services": lambda: faces.exit(parse(ExitRequest, {"services": "S3,TPU"}), today=DAY),
    }
    written = keys(asked[key]().json()["result"], but=TOLD_ELSEWHERE)
    assert written - set(re.findall(r"`(\w+)`", read("json.md"))) == set()


def test_every_column_of_the_log_and_of_the_table_of_services_is_in_the_reference() -> None:
    text = read("files.md")
    header = (PACKAGE / "data" / "services.csv").read_text("utf-8").splitlines()[0].split(",")
    assert [column for column in (*watch.COLUMNS, *header) if f"`{column}`" not in text] == []


def test_every_column_that_a_bill_must_have_is_in_the_reference() -> None:
    text = read("files.md").split("## Cost exports")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    needed = {name for row in rows if "| yes |" in row for name in re.findall(r"`(\w+)`", row)}
    assert needed == {name for meant in focus_rows.NEEDED for name in focus_rows.COLUMNS[meant]} - {
        "BillingPeriodStart"
    }


def test_the_figures_in_the_readme_are_those_of_the_bundle() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    offers, rates = package.offers(), package.tables()["throughput"]
    young = offers.take(offers.observed >= as_days(date(2025, 11, 30)))
    several = {key: len({row[key] for row in rates}) for key in ("workload", "accelerator")}
    assert f"{len(offers):,} dated offers of {len(set(offers.provider.codes))} providers" in text
    assert f"{len(young)} of them, of {len(set(young.provider.codes))} providers" in text
    assert f"{len(rates):,} measured training rates of {several['workload']} networks" in text
    assert f"on {several['accelerator']} accelerators" in text
