"""The command line: what it asks, what it prints where, and how it ends. The world is a stand-in, handed in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpuwise.cli import Session, program
from gpuwise.cli.help import EXAMPLES, QUESTIONS
from gpuwise.cli.program import languages
from gpuwise.errors import (
    DataError,
    GpuwiseError,
    InvalidInput,
    LauncherFailed,
    MeasurementFailed,
    Message,
    MissingEvidence,
    UnknownName,
)
from gpuwise.locale import available
from gpuwise.model import Ranking
from gpuwise.render.data import ranking_document
from gpuwise.request import RankRequest, options
from gpuwise.view.page import Page, Table
from gpuwise.view.ranking import ranking_page
from tests.pages import make_ranking

TODAY = date(2026, 11, 30)
ASK = {
    "rank": ["rank", "painter-heavy"],
    "explain": ["explain", "painter-heavy"],
    "describe": ["describe", "painter-heavy"],
    "measure": ["measure", "painter-light"],
    "ceilings": ["ceilings"],
    "check": ["check"],
    "runs": ["runs", "list"],
    "data": ["data", "list"],
    "accuracy": ["accuracy"],
    "bill": ["bill", "events.toml"],
    "own": ["own", "--demand", "8GPUs", "--gpu", "H100-SXM"],
    "exit": ["exit", "usage.csv"],
}
EVERY = pytest.mark.parametrize("verb", QUESTIONS)


@dataclass
class Reply:
    """An answer: a small ranking, whatever was asked."""

    ranking: Ranking
    exit_code: int = 0

    def page(self) -> Page:
        return ranking_page(self.ranking, RankRequest(workloads=("painter-heavy",)))

    def json(self) -> dict[str, Any]:
        return ranking_document(self.ranking, RankRequest(workloads=("painter-heavy",)))

    def table(self) -> Table:
        return next(block for block in self.page().blocks if isinstance(block, Table))

    def toml(self) -> str:
        return 'name = "painter-heavy"\n'

    def record(self) -> str:
        return '{"kind": "run"}\n'


@dataclass
class World:
    """Stands in for `gpuwise.faces`: remembers what it was asked, then answers, or does what `instead` says."""

    reply: Reply
    instead: Callable[[], object] | None = None
    asked: list[tuple[str, Any, date]] = field(default_factory=list)
    progress: tuple[Message, ...] = ()

    def _answer(self, verb: str, request: object, today: date) -> Reply:
        self.asked.append((verb, request, today))
        if self.instead:
            self.instead()
        return self.reply

    def rank(self, request: object, *, today: date) -> Reply:
        return self._answer("rank", request, today)

    def explain(self, request: object, *, today: date) -> Reply:
        return self._answer("explain", request, today)

    def describe(self, request: object, *, today: date) -> Reply:
        return self._answer("describe", request, today)

    def data(self, request: object, *, today: date) -> Reply:
        return self._answer("data", request, today)

    def runs(self, request: object, *, today: date) -> Reply:
        return self._answer("runs", request, today)

    def bill(self, request: object, *, today: date) -> Reply:
        return self._answer("bill", request, today)

    def own(self, request: object, *, today: date) -> Reply:
        return self._answer("own", request, today)

    def exit(self, request: object, *, today: date) -> Reply:
        return self._answer("exit", request, today)

    def measure(self, request: object, *, today: date, tell: Callable[[Message], None]) -> Reply:
        return self._long("measure", request, today, tell)

    def ceilings(self, request: object, *, today: date, tell: Callable[[Message], None]) -> Reply:
        return self._long("ceilings", request, today, tell)

    def check(self, request: object, *, today: date, tell: Callable[[Message], None]) -> Reply:
        return self._long("check", request, today, tell)

    def accuracy(self, request: object, *, today: date, tell: Callable[[Message], None]) -> Reply:
        return self._long("accuracy", request, today, tell)

    def _long(self, verb: str, request: object, today: date, tell: Callable[[Message], None]) -> Reply:
        for line in self.progress:
            tell(line)
        return self._answer(verb, request, today)

    def usd_per(self, code: str) -> float:
        return {"EUR": 1.08}[code]

    def data_version(self) -> str:
        return "2026.11.30"


@pytest.fixture
def world(ranking: Ranking) -> World:
    return World(Reply(ranking))


def run(world: World, *args: str, **environment: str) -> Result:
    session = Session(world=world, today=TODAY)
    return CliRunner(env={"LC_ALL": "C.UTF-8", "COLUMNS": "120", **environment}).invoke(program, args, obj=session)


def failing(error: BaseException) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


# ---- help -------------------------------------------------------------------------------------------------------


def test_gpuwise_alone_shows_the_question_that_each_command_answers(world: World) -> None:
    result = run(world)
    assert result.exit_code == 0
    assert result.stdout == run(world, "--help").stdout == run(world, "-h").stdout
    assert all(f"  {verb} " in result.stdout for verb in QUESTIONS)
    assert "Where should these jobs run?" in result.stdout


@EVERY
def test_the_help_of_a_command_names_every_option_and_ends_with_two_examples(world: World, verb: str) -> None:
    result = run(world, verb, "--help")
    assert result.exit_code == 0
    words = result.stdout.split()
    assert [o.name for o in options(_request(verb)).values() if o.spelled not in words and not o.positional] == []
    assert "Output:" in result.stdout
    assert result.stdout.rstrip().endswith("\n".join(f"  {example}" for example in EXAMPLES[verb]).lstrip())
    assert world.asked == []


@pytest.mark.parametrize(
    ("verb", "usual"),
    [("exit", "freely. Default: 50%."), ("own", "15 years. Default: 60 months."), ("own", "answer. Default: 0.")],
)
def test_the_help_tells_a_default_as_it_would_be_written(world: World, verb: str, usual: str) -> None:
    assert usual in " ".join(run(world, verb, "--help").stdout.split())


@pytest.mark.parametrize("example", [e for examples in EXAMPLES.values() for e in examples if "--help" not in e])
def test_every_example_of_the_help_runs(world: World, example: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(world, *example.split()[1:])
    assert result.exit_code == 0, result.stderr
    assert len(world.asked) == 1


@EVERY
def test_the_help_offers_the_languages_that_there_are_and_no_other(world: World, verb: str) -> None:
    shown = " ".join(run(world, verb, "--help").stdout.split())
    assert f"Language of the answer. One of {', '.join(available())}." in shown


def test_version_names_the_code_and_the_data(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    assert run(world, "--version").stdout == "gpuwise 9.9, data 2026.11.30\n"


# ---- what is asked ----------------------------------------------------------------------------------------------


@EVERY
def test_a_command_asks_its_question_once_for_today(world: World, verb: str) -> None:
    assert run(world, *ASK[verb]).exit_code == 0
    ((asked, request, today),) = world.asked
    assert (asked, type(request), today) == (verb, _request(verb), TODAY)


def test_what_stands_after_two_dashes_is_a_program_word_for_word(world: World) -> None:
    given = ["python", "train.py", "--json", "--steps", "3", "", " a b ", "--"]
    result = run(world, "measure", "--steps", "200", "--json", "--", *given)
    assert result.exit_code == 0, result.stderr
    request = world.asked[0][1]
    assert (request.command, request.workload, request.steps) == (tuple(given), None, 200)


def test_options_of_a_program_are_not_ours(world: World) -> None:
    """--json after the dashes is the program's: an error is told to the person, not to a script."""
    result = run(world, "measure", "--steps", "none", "--", "python", "train.py", "--json", "--debug")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("gpuwise: --steps")


def test_a_second_word_is_no_program_without_the_dashes(world: World) -> None:
    result = run(world, "measure", "painter-light", "python")
    assert result.exit_code == 2
    assert "python" in result.stderr
    assert world.asked == []


def test_progress_goes_to_standard_error_and_the_answer_stays_whole(world: World) -> None:
    world.progress = (Message("step {n}", n=1), Message("step {n}", n=2))
    result = run(world, "measure", "painter-light", "--json")
    assert json.loads(result.stdout)["schema"] == 1
    assert "step 1\nstep 2\n" in result.stderr


def test_a_record_is_written_beside_the_answer(world: World, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    assert run(world, "measure", "painter-light", "--out", str(out)).exit_code == 0
    assert json.loads(out.read_text()) == {"kind": "run"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["measure"], "WORKLOAD"),
        (["measure", "painter-light", "--", "python"], "one of them"),
        (["measure", "--batch", "8", "--", "python", "train.py"], "--batch"),
        (["measure", "painter-light", "--samples-per-step", "8"], "--samples-per-step"),
        (["measure", "--resume", "3", "--batch", "8"], "--batch"),
        (["measure", "painter-light", "--target", "120%"], "--target"),
        (["measure", "painter-light", "--minutes", "soon"], "--minutes"),
        (["runs", "show"], "RUN"),
        (["runs", "show", "1", "2"], "RUN"),
        (["runs", "compare", "1"], "RUN"),
        (["runs", "compare", "1", "2", "--limit", "3"], "--limit"),
        (["rank"], "WORKLOAD"),
    ],
)
def test_a_wish_of_measuring_that_cannot_be_met_is_refused_by_name(world: World, args: list[str], says: str) -> None:
    result = run(world, *args)
    assert result.exit_code == 2
    assert says in result.stderr.splitlines()[0]
    assert world.asked == []


def test_options_may_be_repeated_or_written_with_commas(world: World) -> None:
    run(world, "rank", "a", "b", "--gpu", "H100-SXM,A100-80GB", "--gpu", "T4", "--startable", "--budget", "50 EUR")
    request = world.asked[0][1]
    assert request == RankRequest(
        workloads=("a", "b"), gpu=("H100-SXM", "A100-80GB", "T4"), startable=True, budget_usd=pytest.approx(54.0)
    )


def test_a_request_file_holds_the_same_options_and_the_command_line_wins(world: World, tmp_path: Path) -> None:
    file = tmp_path / "Läufe 実験.toml"
    file.write_text('workloads = ["a"]\ngpu = "T4"\nmax_price = 2.5\nas-of = 2026-01-31\nstartable = true\n', "utf-8")
    run(world, "rank", "--request", str(file), "--gpu", "V100")
    assert world.asked[0][1] == RankRequest(
        workloads=("a",), gpu=("V100",), max_price_usd_per_hour=2.5, as_of=date(2026, 1, 31), startable=True
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"deadlin = '2 h'", ["no option deadlin in job.toml, line 1", "Did you mean deadline?"]),
        (b"gpu = 'T4'\ndeadline = 'soon'", ["deadline in job.toml, line 2: ", "soon"]),
        (b"gpu = 'T4'\ndeadline = =", ["job.toml", "line 2"]),
        (b"[gpu]\nname = 'T4'", ["gpu in job.toml, line 1", "text or a number"]),
        (None, ["job.toml", "No such file"]),
    ],
)
def test_a_bad_request_file_is_named_with_what_is_wrong(
    world: World, tmp_path: Path, content: bytes | None, words: list[str]
) -> None:
    if content is not None:
        (tmp_path / "job.toml").write_bytes(content)
    result = run(world, "rank", "painter-heavy", "--request", str(tmp_path / "job.toml"))
    assert_one_error(result, 2, *words)


# ---- where the answer goes --------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "html"])
def test_uc_124_every_command_has_forms_for_programs_and_no_colours_in_a_pipe(
    world: World, verb: str, form: str
) -> None:
    option = {"text": [], "html": ["--html", "-"]}.get(form, [f"--{form}"])
    result = run(world, *ASK[verb], *option)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert READS[form](result.stdout)


READS: dict[str, Callable[[str], object]] = {
    "text": lambda text: "coreweave" in text,
    "json": lambda text: json.loads(text)["schema"] == 1,
    "csv": lambda text: [row["provider"] for row in csv.DictReader(io.StringIO(text))].count("coreweave") == 1,
    "markdown": lambda text: text.startswith("| "),
    "html": lambda text: text.lower().startswith("<!doctype html>"),
}


def test_uc_124_an_answer_without_rows_is_valid_json_and_ends_with_3() -> None:
    world = World(Reply(make_ranking((), counts={"budget": 214}), exit_code=3))
    result = run(world, "rank", "painter-heavy", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["result"]["candidates"] == []
    assert json.loads(result.stdout)["result"]["excluded_by_rule"] == {"budget": 214}
    assert result.stderr.startswith("gpuwise: ")


def test_an_answer_that_is_no_is_one_short_line_on_standard_error() -> None:
    result = run(World(Reply(make_ranking(()), exit_code=3)), "rank", "a")
    assert result.stderr == "gpuwise: No offer passes the filters.\n"
    assert "Where should" in result.stdout


def test_an_answer_without_rows_still_shows_its_page() -> None:
    world = World(Reply(make_ranking((), counts={"budget": 214}), exit_code=3))
    result = run(world, "rank", "painter-heavy")
    assert (result.exit_code, "214" in result.stdout) == (3, True)


def test_a_report_is_written_beside_any_form(world: World, tmp_path: Path) -> None:
    report = tmp_path / "Bericht ü.html"
    result = run(world, "rank", "painter-heavy", "--html", str(report), "--json")
    assert json.loads(result.stdout)["schema"] == 1
    assert report.read_text("utf-8").lower().startswith("<!doctype html>")
    assert str(report) in result.stderr


def test_describe_writes_a_workload_to_be_changed(world: World, tmp_path: Path) -> None:
    run(world, "describe", "painter-heavy", "--toml", str(tmp_path / "mine.toml"))
    assert (tmp_path / "mine.toml").read_text("utf-8") == world.reply.toml()
    assert run(world, "describe", "painter-heavy", "--toml", "-").stdout == world.reply.toml()


def test_uc_117_csv_has_an_option_for_the_byte_order_mark(world: World) -> None:
    with_mark = run(world, "rank", "a", "--csv", "--bom").stdout_bytes
    assert with_mark == b"\xef\xbb\xbf" + run(world, "rank", "a", "--csv").stdout_bytes


def test_csv_has_no_place_for_warnings_so_they_go_to_standard_error(world: World) -> None:
    result = run(world, "rank", "a", "--csv")
    assert "no exact price date" in result.stderr
    assert "no exact price date" not in result.stdout


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_page_keeps_to_the_width_asked_for(world: World, width: int) -> None:
    lines = run(world, "rank", "a", "--width", str(width)).stdout.splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    "options",
    [["--json", "--csv"], ["--csv", "--markdown"], ["--html", "-", "--json"], ["--bom"], ["--width", "wide"]],
)
def test_outputs_that_exclude_each_other_are_refused(world: World, options: list[str]) -> None:
    result = run(world, "rank", "a", *options)
    assert (result.exit_code, world.asked) == (2, [])
    assert options[0] in result.stderr


@pytest.mark.parametrize("place", ["missing/report.html", "folder", "file/report.html"])
def test_a_report_that_cannot_be_written_is_refused_before_any_work(world: World, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert_one_error(run(world, "rank", "a", "--html", str(tmp_path / place)), 2, place)
    assert world.asked == []
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RuntimeError("oh"), InvalidInput("no", "yes")])
def test_a_report_stays_as_it_was_when_the_work_fails(world: World, tmp_path: Path, end: BaseException) -> None:
    report = tmp_path / "report.html"
    report.write_text("old", "utf-8")
    world.instead = failing(end)
    assert run(world, "rank", "a", "--html", str(report)).exit_code != 0
    assert [(p.name, p.read_text("utf-8")) for p in tmp_path.iterdir()] == [("report.html", "old")]


# ---- how it ends ------------------------------------------------------------------------------------------------


def assert_one_error(result: Result, code: int, *words: str) -> None:
    """One error of two lines on standard error: what happened, and what to do; nothing on standard output."""
    assert result.exit_code == code
    assert result.stdout == ""
    happened, to_do = result.stderr.splitlines()
    assert happened.startswith("gpuwise: ")
    assert to_do.startswith("  ")
    assert to_do.strip()
    assert [w for w in words if w not in result.stderr] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnak"], ["rnak", "Did you mean rank?"]),
        (["frobnicate"], ["frobnicate", "rank, explain"]),
        (["--nonsense"], ["--nonsense", "gpuwise --help"]),
        (["rank"], ["WORKLOAD", "painter-heavy"]),
        (["rank", "a", "--budgett", "5"], ["--budgett", "Did you mean --budget?"]),
        (["rank", "a", "--budget"], ["--budget", "needs a value"]),
        (["rank", "a", "--budget", "--csv"], ["--budget", "needs a value", "--csv"]),
        (["rank", "a", "--html", "--csv"], ["--html", "needs a value", "--csv"]),
        (["rank", "a", "--startable=yes"], ["--startable"]),
        (["rank", "a", "--foo"], ["--foo", "gpuwise rank --help"]),
        (["rank", "a", "--html", ""], ["--html", "empty"]),
        (["rank", "a", "--request", " "], ["--request", "empty"]),
        (["rank", "a", "--width", ""], ["--width", "empty"]),
        (["rank", "a", "--deadline", "3"], ["--deadline", '"3"', "no unit"]),
        (["rank", "a", "--epochs", "-5"], ["--epochs", "-5"]),
        (["rank", "a", "--gpu", "80GB..", "--gpu", "..24GB"], ["--gpu", "80GB..,..24GB"]),
        (["explain", "a", "b"], ["b", "gpuwise explain --help"]),
        (["data", "lst"], ["ACTION", "lst", "Did you mean list?"]),
        (["data", "diff", "a"], ["data diff"]),
        (["describe"], ["TARGET"]),
        (["rank", "a", "--lang", "tlh"], ["tlh"]),
    ],
)
def test_a_bad_command_line_gives_one_error_and_ends_with_2(world: World, args: list[str], words: list[str]) -> None:
    assert_one_error(run(world, *args), 2, *words)
    assert world.asked == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("It is bad.", "Mend it."), 2),
        (UnknownName("It is unknown.", "Mend it.", ["T4"]), 2),
        (DataError("It is bad.", "Mend it.", file="a.csv", row=3, column="price"), 2),
        (MissingEvidence("There is none.", "Measure."), 3),
        (MeasurementFailed("It failed.", "Try again."), 4),
        (LauncherFailed("It failed.", "Try again."), 4),
    ],
)
def test_an_error_of_a_verb_is_told_once_with_its_exit_code(world: World, error: GpuwiseError, code: int) -> None:
    world.instead = failing(error)
    assert_one_error(run(world, "rank", "a"), code, str(error.message), str(error.hint))


def test_with_json_an_error_is_a_document_too(world: World) -> None:
    world.instead = failing(DataError("It is bad.", "Mend it.", file="a.csv", row=3, column="price"))
    result = run(world, "rank", "a", "--json")
    assert json.loads(result.stdout) == {
        "schema": 1,
        "error": {
            "kind": "DataError",
            "message": "It is bad.",
            "hint": "Mend it.",
            "exit_code": 2,
            "file": "a.csv",
            "row": 3,
            "column": "price",
        },
    }
    assert result.stderr == "gpuwise: It is bad.\n  Mend it.\n"


@pytest.mark.parametrize("args", [["rank", "a", "--json", "--budgett", "5"], ["rank", "--json"], ["rnak", "--json"]])
def test_with_json_even_a_bad_command_line_is_answered_by_a_document(world: World, args: list[str]) -> None:
    result = run(world, *args)
    assert json.loads(result.stdout)["error"]["exit_code"] == result.exit_code == 2


def test_a_fault_of_ours_is_one_line_and_a_traceback_only_for_those_who_ask(world: World) -> None:
    world.instead = failing(KeyError("price"))
    assert_one_error(run(world, "rank", "a"), 1, "KeyError: 'price'", "--debug")
    detailed = run(world, "rank", "a", "--debug")
    assert detailed.exit_code == 1
    assert "Traceback (most recent call last)" in detailed.stderr
    assert detailed.stderr.splitlines()[-2].startswith("gpuwise: ")


def test_debug_shows_where_an_error_of_the_person_arose_too(world: World) -> None:
    assert "Traceback" in run(world, "rank", "a", "--deadline", "3", "--debug").stderr


def test_an_interruption_ends_with_130(world: World) -> None:
    world.instead = failing(KeyboardInterrupt())
    result = run(world, "rank", "a")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "gpuwise: Interrupted.\n")


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, []),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"}, []),
        ({"LANG": "zh_CN.UTF-8"}, ["zh_CN.UTF-8"]),
        ({"LANG": "de_AT.UTF-8", "LC_ALL": "C"}, []),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, ["de_DE.UTF-8"]),
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "zh_CN:de"}, ["zh_CN", "de", "de_DE.UTF-8"]),
    ],
)
def test_the_language_is_that_of_the_environment(environment: dict[str, str], wanted: list[str]) -> None:
    assert languages(environment) == wanted


# ---- the real world ---------------------------------------------------------------------------------------------


def run_real(*args: str) -> Result:
    """A command line answered from the bundled data."""
    return CliRunner(env={"LC_ALL": "C.UTF-8", "COLUMNS": "120"}).invoke(program, args, obj=Session(today=TODAY))


@pytest.mark.parametrize(
    "question",
    [
        ["rank", "painter-heavy"],
        ["explain", "painter-heavy", "--on", "T4"],
        ["describe", "painter-heavy"],
        ["data", "list"],
        ["data", "list", "--by", "provider,gpu"],
        ["data", "show", "p2.xlarge"],
        ["data", "check"],
        ["data", "diff", "2024-01-01", "2026-01-01"],
    ],
    ids=" ".join,
)
def test_uc_124_every_question_is_answered_as_page_json_and_csv(question: list[str]) -> None:
    page, document, table = (run_real(*question, *form) for form in ([], ["--json"], ["--csv"]))
    assert (page.exit_code, document.exit_code, table.exit_code) == (0, 0, 0), page.stderr
    assert "\x1b" not in page.stdout
    envelope = json.loads(document.stdout, parse_constant=pytest.fail)
    assert list(envelope)[:5] == ["schema", "request", "data_version", "as_of", "warnings"]
    assert "result" in envelope
    header, *rows = csv.reader(io.StringIO(table.stdout))
    assert rows
    assert {len(row) for row in rows} == {len(header)}


def test_a_wish_that_no_offer_meets_ends_with_3_and_says_what_would_let_one_in() -> None:
    result = run_real("rank", "painter-heavy", "--deadline", "1 min", "--json")
    answer = json.loads(result.stdout)["result"]
    assert result.exit_code == 3
    assert (answer["total_candidates"], answer["candidates"]) == (0, [])
    assert answer["excluded_by_rule"]["deadline"] > 0
    assert "deadline" in [r["rule"] for r in answer["relaxations"]]
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--data-must-stay", "on-premises"], 3),
        (["--data-must-stay", "on-premises", "--hours-per-month", "400"], 0),
        (["--budget", "0USD"], 3),
    ],
)
def test_owned_machines_alone_are_an_answer_only_where_they_can_be_ranked(options: list[str], code: int) -> None:
    result = run_real("rank", "painter-heavy", *options)
    assert result.exit_code == code
    assert result.stdout.startswith("Where should painter-heavy run?")
    assert len(result.stderr.splitlines()) == (1 if code else 0)


def test_a_gpu_of_several_variants_is_explained_with_evidence_and_offers_for_each() -> None:
    result = run_real("explain", "painter-heavy", "--on", "2xA100-80GB", "--json")
    answer = json.loads(result.stdout)["result"]
    assert len(answer["predictions"]) == 2
    assert {c["offer"]["accelerators"] for c in answer["offers"]} == {2}
    assert len(answer["offers"]) == 5
    page = run_real("explain", "painter-heavy", "--on", "2xA100-80GB").stdout
    assert page.count("The evidence for 2 × A100") == 2
    assert "The cheapest offers with it" in page


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rank", "painter-hevy"], ["painter-hevy", "painter-heavy"]),
        (["rank", "painter-heavy", "--gpu", "A100-8:8"], ["A100-8", "A100-80GB:8"]),
        (["rank", "painter-heavy", "--provider", "awss"], ["awss", "aws"]),
        (["rank", "painter-heavy", "--budget", "5 XYZ"], ["--budget", "XYZ", "EUR"]),
        (["rank", "painter-heavy", "--offers", "nowhere.csv"], ["nowhere.csv"]),
        (["data", "show", "p2.xlarg"], ["p2.xlarg", "p2.xlarge"]),
    ],
)
def test_a_name_that_nobody_knows_ends_with_2_and_the_nearest(args: list[str], words: list[str]) -> None:
    assert_one_error(run_real(*args), 2, *words)


def _request(verb: str) -> type[Any]:
    from gpuwise import request

    kind: type[Any] = getattr(request, f"{verb.capitalize()}Request")
    return kind
