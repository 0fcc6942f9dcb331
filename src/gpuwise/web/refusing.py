"""What is said where no answer is computed: too large, not allowed, not there, given up. As a page or as a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass

from gpuwise.errors import Message
from gpuwise.faces.failing import SCHEMA
from gpuwise.locale import activate, negotiate, words
from gpuwise.view.page import Page, Text
from gpuwise.web import site

LANGUAGE = "gpuwise_lang"
"""The cookie that keeps the language of the reader."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """status: of HTTP. message: what happened; hint: what to do."""

    status: int
    message: Message
    hint: Message


def told(refusal: Refusal, headers: Mapping[str, str], path: str) -> tuple[str, bytes]:
    """Content type and body: a page for a browser that asked for one, else the document of an error."""
    return copy_context().run(_told, refusal, headers, path)


def _told(refusal: Refusal, headers: Mapping[str, str], path: str) -> tuple[str, bytes]:
    chosen = language(headers)
    activate(chosen)
    message, hint = words(refusal.message), words(refusal.hint)
    if "text/html" in headers.get("accept", "") and "." not in path:
        shown = Page(title=words(Message("No answer")), blocks=(Text(text=message, role="answer"), Text(text=hint)))
        return "text/html; charset=utf-8", site.page("", {}, shown, chosen).encode()
    about = {"kind": "Refused", "message": message, "hint": hint}
    return "application/json", json.dumps({"schema": SCHEMA, "error": about}, ensure_ascii=False).encode()


def language(headers: Mapping[str, str], said: str = "") -> str:
    """What the address says, else what the reader chose before, else what the browser is set to."""
    accepted = [part.partition(";")[0].strip() for part in headers.get("accept-language", "").split(",")]
    return negotiate([said, cookie(headers, LANGUAGE), *accepted])


def cookie(headers: Mapping[str, str], wanted: str) -> str:
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")
