"""What may be asked over HTTP, and how a query becomes what `request.parse` reads.

A query never names a file of the server, and makes it fetch nothing: options that read a file take an upload, options
that write one or ask providers are refused, and a job is one of the built-in ones or an uploaded file. The same holds
for what an uploaded scenario says, since its keys are options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpuwise import request
from gpuwise.errors import InvalidInput, Message
from gpuwise.request import Option, options

VERBS = ("rank", "explain", "describe", "runs", "own", "exit", "accuracy", "data", "bill")
"""Questions that need no machine of their own; the others measure the one that they run on."""
TO_SIGN = ("rank", "own", "exit")
"""Questions whose answer is a decision."""
FILES = ("path", "paths")
REFUSED = ("watch", "live")
"""Options that write a file of the server, or ask other hosts."""
JOBS = ("workloads", "workload", "target", "job")
"""Options that name a job: on the command line it may be a file or a module, here a built-in one or an upload."""
FETCH = "refresh"
"""The action of `data` that asks other hosts."""
SCENARIO = "scenario"
DEFAULTS: Mapping[str, Mapping[str, str]] = {"data": {"action": "list"}, "runs": {"action": "list"}}
"""What is asked where nothing else is said."""
RESERVED = ("lang", "token")
Said = dict[str, list[str]]
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"[0-9]{1,18}")


def asked(verb: str) -> dict[str, Option]:
    """The options of a verb that may be said over HTTP, by the name that is typed."""
    return {name: one for name, one in _options(verb).items() if one.field not in REFUSED}


def _options(verb: str) -> dict[str, Option]:
    return options(getattr(request, f"{verb.capitalize()}Request"))


def uploads(verb: str) -> dict[str, Option]:
    """Those that take a file."""
    return {name: one for name, one in asked(verb).items() if one.kind in FILES or is_job(verb, one)}


def is_job(verb: str, option: Option) -> bool:
    """Does the option name a job that is to be read? `runs` only looks for the name."""
    return option.field in JOBS and verb != "runs"


def said(verb: str, query: Iterable[tuple[str, str]], jobs: Sequence[str]) -> Said:
    """The query by option, without what is empty. InvalidInput for what is not for HTTP; jobs: names of built-in ones.

    Options that there are not stay: `request.parse` names the nearest.
    """
    known, found = _options(verb), Said()
    for name, value in query:
        tidy = name.replace("_", "-")  # as `request.parse` has it
        if tidy in RESERVED or not value.strip():
            continue
        option = known.get(tidy)
        texts = _texts(verb, option, value) if option and option.repeats else [value]
        if option is not None:
            _refuse(verb, option, texts, jobs)
        found.setdefault(tidy, []).extend(texts)
    whole = {name: [value] for name, value in DEFAULTS.get(verb, {}).items()} | found
    _refuse_names(verb, whole)
    return whole


def _texts(verb: str, option: Option, value: str) -> list[str]:
    """One entry of a form holds several values: a line each, and where none has a blank in it, a word each."""
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    words = value.split()
    by_word = is_job(verb, option) or (option.field == "names" and (verb == "runs" or all(map(_DAY.fullmatch, words))))
    return words if by_word else lines


def refuse_scenario(verb: str, data: Mapping[str, object], jobs: Sequence[str]) -> None:
    """InvalidInput where an uploaded scenario says what a query may not."""
    known = _options(verb)
    for key, value in data.items():
        option = known.get(key.replace("_", "-"))
        if option is not None:
            _refuse(verb, option, [str(one) for one in (value if isinstance(value, list) else [value])], jobs)


def _refuse(verb: str, option: Option, texts: Sequence[str], jobs: Sequence[str]) -> None:
    if option.kind in FILES and not (option.field == "measured" and all(map(_NUMBER.fullmatch, texts))):
        raise InvalidInput(
            Message("{option} reads a file, and a request cannot name one of the server.", option=option.spelled),
            Message("Upload it: choose the file in the form, or send it as multipart/form-data with POST."),
        )
    if option.field in REFUSED:
        raise InvalidInput(
            Message("{option} is for the command line only.", option=option.spelled),
            Message("Leave it out here."),
        )
    if is_job(verb, option) and (other := next((text for text in texts if text.strip() not in jobs), None)):
        raise InvalidInput(
            Message('{option}: there is no built-in job "{name}".', option=option.spelled, name=other),
            Message("Upload its file, or write one of {names}.", names=", ".join(jobs)),
        )


def _refuse_names(verb: str, found: Said) -> None:
    """Names that the command line would take for files; and the action that asks other hosts."""
    action, names = found.get("action", [""])[0].strip().lower(), found.get("names", [])
    if verb == "data" and any(text.strip().lower() == FETCH for text in found["action"]):
        raise InvalidInput(
            Message("data {action} is for the command line only.", action=FETCH),
            Message("Run on the server: gpuwise data {action}", action=FETCH),
        )
    if verb == "data" and action == "diff" and not all(map(_DAY.fullmatch, names)):
        raise InvalidInput(
            Message("Here two days are compared, and no files."), Message("Write two days, such as 2026-01-31.")
        )
    if verb == "runs" and not all(_NUMBER.fullmatch(part.strip()) for text in names for part in text.split(",")):
        raise InvalidInput(Message("A run is named by its number here."), Message("See the list: /runs"))


def query(found: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The same as pairs: the state that a URL holds."""
    return [(name, value) for name, values in found.items() for value in values]
