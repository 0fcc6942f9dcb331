"""What may be asked over HTTP, and how a query becomes what `request.parse` reads.

A query never names a file of the server, and makes it fetch nothing: options that read a file take an upload, options
that write one or ask providers are refused, and a job is one of the built-in ones or an uploaded file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuwise import request
from gpuwise.errors import InvalidInput, Message
from gpuwise.request import Option, options

VERBS = ("rank", "explain", "describe", "runs", "own", "exit", "accuracy", "data", "bill")
"""Questions that need no machine of their own; the others measure the one that they run on."""
FILES = ("path", "paths")
REFUSED = ("watch", "live")
"""Options that write a file of the server, or ask other hosts."""
JOBS = ("workloads", "workload", "target", "job")
"""Options that name a job: on the command line it may be a file or a module, here only one that is built in."""
FETCH = "fetch"
RESERVED = ("lang",)
Said = dict[str, list[str]]


def asked(verb: str) -> dict[str, Option]:
    """The options of a verb that may be said over HTTP, by the name that is typed."""
    known = options(getattr(request, f"{verb.capitalize()}Request"))
    return {name: one for name, one in known.items() if one.field not in REFUSED}


def uploads(verb: str) -> dict[str, Option]:
    """Those that take a file."""
    return {name: one for name, one in asked(verb).items() if one.kind in FILES}


def said(verb: str, query: Iterable[tuple[str, str]], jobs: Sequence[str]) -> Said:
    """The query by option, without what is empty. InvalidInput for what is not for HTTP; jobs: names of built-in ones.

    Options that there are not stay: `request.parse` names the nearest.
    """
    known, found = options(getattr(request, f"{verb.capitalize()}Request")), Said()
    for name, value in query:
        if name in RESERVED or not value.strip():
            continue
        option = known.get(name)
        texts = [line.strip() for line in value.splitlines() if line.strip()] if option and option.repeats else [value]
        if option is not None:
            _refuse(verb, option, texts, jobs)
        found.setdefault(name, []).extend(texts)
    return found


def _refuse(verb: str, option: Option, texts: Sequence[str], jobs: Sequence[str]) -> None:
    if option.kind in FILES:
        raise InvalidInput(
            Message("{option} reads a file, and a request cannot name one of the server.", option=option.spelled),
            Message("Upload it: choose the file in the form, or send it as multipart/form-data with POST."),
        )
    if option.field in REFUSED:
        raise InvalidInput(
            Message("{option} is for the command line only.", option=option.spelled),
            Message("Leave it out here."),
        )
    if option.field in JOBS and (other := next((text for text in _words(texts) if text not in jobs), None)):
        raise InvalidInput(
            Message('{option}: there is no built-in job "{name}".', option=option.spelled, name=other),
            Message("The built-in ones are {names}.", names=", ".join(jobs)),
        )
    if verb == "runs" and option.field == "names" and not all(text.isascii() and text.isdigit() for text in texts):
        raise InvalidInput(Message("A run is named by its number here."), Message("See the list: /runs"))
    if verb == "data" and option.field == "action" and FETCH in texts:
        raise InvalidInput(
            Message("data fetch is for the command line only."), Message("Run on the server: gpuwise data fetch")
        )


def _words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


def query(found: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The same as pairs: the state that a URL holds."""
    return [(name, value) for name, values in found.items() for value in values]
