"""A served page: the way around, the form of a question, and the answer below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from gpuwise.locale import N_, _, available
from gpuwise.render import html
from gpuwise.request import CHOICES, GROUPS, KINDS, Option
from gpuwise.store import package
from gpuwise.view.page import Chart, Page
from gpuwise.web.asked import FETCH, FILES, TO_SIGN, VERBS, asked, is_job, query, uploads

if TYPE_CHECKING:
    from jinja2 import Template

TITLES: Mapping[str, str] = {
    "rank": N_("Where to train"), "explain": N_("Why"), "describe": N_("A job"), "runs": N_("Runs"),
    "own": N_("Own or rent"), "exit": N_("Leave the cloud"), "accuracy": N_("Accuracy"), "data": N_("Facts"),
    "bill": N_("Bills"),
}  # fmt: skip
QUESTIONS: Mapping[str, str] = {
    "rank": N_("Where should these jobs run? Every offer with its time and cost."),
    "explain": N_("The evidence behind one prediction."),
    "describe": N_("What does this training job consist of?"),
    "runs": N_("What was measured?"),
    "own": N_("Own or rent, and how much to own?"),
    "exit": N_("When to leave the cloud, from months of bills."),
    "accuracy": N_("How wrong predictions were on rows that were left out."),
    "data": N_("The facts: offers, GPUs, servers, with source and day."),
    "bill": N_("What did it cost? From records of what happened."),
}
TWINS = {"json": "JSON", "csv": "CSV", "md": "Markdown", "html": N_("Report")}
LANGUAGES = {"en": "English", "zh_CN": "中文"}
IN_A_CURRENCY = ("rank", "explain", "own", "exit", "data")
"""Verbs whose amounts are shown in the currency that is asked for; a bill stays in its own."""
FIRST_GROUPS = {"own": "Demand", "exit": "Leaving"}
"""The group that is open beside the words themselves, where it is not the first one."""
EXAMPLES: Mapping[str, str] = {
    "rank": "workloads=painter-heavy", "explain": "workload=painter-heavy", "describe": "target=painter-heavy",
    "own": "demand=40+GPUs&gpu=H100-SXM", "exit": "services=S3,SageMaker,EC2", "data": "action=list&by=provider",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One entry of a form. kind: text, lines, select, checkbox or file; values: what was said; joint: between them;
    known: what may be said, among other things."""

    name: str
    label: str
    help: str
    kind: str
    values: tuple[str, ...]
    choices: tuple[str, ...]
    placeholder: str
    several: bool
    joint: str
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """said: how many of its fields were said."""

    title: str
    opened: bool
    fields: tuple[Field, ...]
    said: int = 0


def page(
    verb: str, said: Mapping[str, Sequence[str]], answer: Page | None, language: str, *, with_files: bool = False
) -> str:
    """The page of a verb. answer: None where nothing was asked yet. with_files: uploads stand in no URL."""
    state = urlencode(query(said))
    shown = answer is not None and not with_files
    return _template().render(
        verb=verb,
        title=answer.title if answer else _(TITLES.get(verb, "gpuwise")),
        question=_(QUESTIONS[verb]) if verb else "",
        nav=[(name, _(TITLES[name])) for name in VERBS],
        groups=tuple(_groups(verb, said)) if verb else (),
        answer=answer,
        body=html.fragment(answer) if answer else "",
        twins=[(form, _(name), f"{verb}.{form}?{state}") for form, name in _twins(verb)] if shown and verb else [],
        charts=_charts(verb, answer, state) if answer and shown else [],
        example=EXAMPLES.get(verb, ""),
        languages=[(code, LANGUAGES.get(code, code), _in_language(verb, said, code)) for code in available()],
        language=language.replace("_", "-"),
        switches=tuple(_switches(verb, said)) if shown else (),
        has_charts=answer is not None and any(isinstance(block, Chart) for block in answer.blocks),
        uploads=tuple(_upload(option) for option in uploads(verb).values()) if verb else (),
        sent=query(said),
    )


def _twins(verb: str) -> Iterator[tuple[str, str]]:
    yield from TWINS.items()
    if verb in TO_SIGN:
        yield "summary", N_("One page to sign")


def entry(language: str) -> str:
    """The first page: every question with an example."""
    return _entry().render(
        nav=[(name, _(TITLES[name])) for name in VERBS],
        questions=[(name, _(TITLES[name]), _(QUESTIONS[name]), EXAMPLES.get(name, "")) for name in VERBS],
        languages=[(code, LANGUAGES.get(code, code), f"/?lang={code}") for code in available()],
        language=language.replace("_", "-"),
        verb="",
        title="gpuwise",
    )


def _in_language(verb: str, said: Mapping[str, Sequence[str]], code: str) -> str:
    return f"/{verb}?{urlencode([*query(said), ('lang', code)])}"


def _charts(verb: str, answer: Page, state: str) -> list[tuple[str, str, str]]:
    """Each chart's title, and where it is to be had as SVG and as PNG."""
    titles = [block.title for block in answer.blocks if isinstance(block, Chart)]
    return [(title, f"{verb}.svg?chart={n}&{state}", f"{verb}.png?chart={n}&{state}")
            for n, title in enumerate(titles, 1)]  # fmt: skip


# ---- forms ----


def _groups(verb: str, said: Mapping[str, Sequence[str]]) -> Iterator[Group]:
    known = [option for option in asked(verb).values() if option.kind not in FILES or option.field == "measured"]
    words = [option for option in known if option.positional]
    if words:
        yield Group(title="", opened=True, fields=tuple(_field(option, said, verb) for option in words))
    first = FIRST_GROUPS.get(verb)
    for group in sorted(GROUPS, key=lambda name: name != first):
        own = [option for option in known if option.group == group and not option.positional]
        if own:
            count = sum(option.name in said for option in own)
            fields = tuple(_field(option, said, verb) for option in own)
            yield Group(title=_(group), opened=group == first or count > 0, fields=fields, said=count)


ONE_LINE = ("names", "gpu", "market", "column", "text", "paths")
"""Kinds whose values stand on one line, though there may be several."""


def _field(option: Option, said: Mapping[str, Sequence[str]], verb: str) -> Field:
    choices = tuple(name for name in CHOICES.get(option.kind, ()) if not (verb == "data" and name == FETCH))
    kind = "text"
    if option.kind == "flag":
        kind = "checkbox"
    elif choices and not option.repeats:
        kind = "select"
    elif option.repeats and option.kind not in ONE_LINE:
        kind = "lines"
    shown = () if option.kind in FILES else choices
    return Field(
        name=option.name, label=_label(option), help=_(option.help), kind=kind, several=option.repeats, choices=shown,
        values=tuple(said.get(option.name, ())), joint="," if KINDS[option.kind].split else " ",
        placeholder="12" if option.kind in FILES else option.example, known=_known(verb, option),
    )  # fmt: skip


def _known(verb: str, option: Option) -> tuple[str, ...]:
    """What a reader need not type."""
    if is_job(verb, option):
        return tuple(sorted(package.workloads()))
    return _currencies() if option.kind == "currency" else ()


def _currencies() -> tuple[str, ...]:
    return ("USD", *sorted(package.rates()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The same answer in other words: each of its links has a text, an address, and whether it is what is shown."""

    title: str
    links: tuple[tuple[str, str, bool], ...]


def _switches(verb: str, said: Mapping[str, Sequence[str]]) -> Iterator[Switch]:
    if verb in IN_A_CURRENCY:
        codes = {code: code for code in _currencies()}
        yield Switch(title=_("Currency:"), links=tuple(_links(verb, said, "currency", "USD", codes, gone=("rate",))))
    if verb == "rank":
        units = {"charged": _("as charged"), "hour": _("an hour"), "month": _("a month")}
        yield Switch(title=_("Prices:"), links=tuple(_links(verb, said, "price-per", "charged", units)))


def _links(
    verb: str, said: Mapping[str, Sequence[str]], option: str, usual: str, values: Mapping[str, str],
    gone: tuple[str, ...] = (),
) -> Iterator[tuple[str, str, bool]]:  # fmt: skip
    """gone: options that have no meaning for another value."""
    now = said.get(option, [usual])[-1].strip().casefold()
    rest = [pair for pair in query(said) if pair[0] not in (option, *gone)]
    for value, text in values.items():
        yield text, f"{verb}?{urlencode([*rest, (option, value)])}#answer", value.casefold() == now


def _upload(option: Option) -> Field:
    return Field(
        name=option.name, label=_label(option), help=_(option.help), kind="file", several=option.repeats, choices=(),
        values=(), joint="", placeholder="",
    )  # fmt: skip


def _label(option: Option) -> str:
    return option.name.replace("-", " ")


# ---- templates ----


def part(name: str) -> str:
    return files("gpuwise.web").joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> object:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {"_": _}
    return made


@cache
def _template() -> Template:
    return _environment().get_template("question.html")  # type: ignore[attr-defined, no-any-return]


@cache
def _entry() -> Template:
    return _environment().get_template("entry.html")  # type: ignore[attr-defined, no-any-return]
