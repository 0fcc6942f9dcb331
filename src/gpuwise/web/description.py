"""The OpenAPI description of what a program may ask, made from the request types."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpuwise.request import CHOICES, Option
from gpuwise.web.asked import FILES, VERBS, asked
from gpuwise.web.site import QUESTIONS

Json = dict[str, Any]
ERROR: Json = {
    "type": "object",
    "required": ["schema", "error"],
    "properties": {
        "schema": {"const": 1},
        "error": {
            "type": "object",
            "required": ["kind", "message", "hint"],
            "properties": {"kind": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"},
                           "exit_code": {"type": "integer"}},
        },
    },
}  # fmt: skip
ANSWER: Json = {
    "type": "object",
    "required": ["schema", "request", "data_version", "as_of", "warnings", "result"],
    "properties": {
        "schema": {"const": 1},
        "request": {"type": "object"},
        "data_version": {"type": "string"},
        "as_of": {"type": "string", "format": "date"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "fx": {"type": "object"},
        "result": {"type": "object"},
    },
}
FAILURES: Mapping[str, str] = {
    "401": "The token is missing.", "403": "From a page of another host.", "404": "Nothing supports an answer.",
    "413": "Too large.", "421": "Not a name of this server.", "422": "Something that was said cannot be used.",
    "503": "Given up.",
}  # fmt: skip
TABLES = {"csv": "text/csv", "md": "text/markdown"}


def document() -> Json:
    """OpenAPI 3.1."""
    paths: Json = {}
    for verb in VERBS:
        paths[f"/{verb}.json"] = {"get": _get(verb, "application/json", {"$ref": "#/components/schemas/Answer"})}
        for form, media in TABLES.items():
            paths[f"/{verb}.{form}"] = {"get": _get(verb, media, {"type": "string"})}
    return {
        "openapi": "3.1.0",
        "info": {"title": "gpuwise", "version": _version(),
                 "description": "Answers are those of the command line's --json. Values are read as it reads them."},
        "paths": paths,
        "components": {"schemas": {"Answer": ANSWER, "Error": ERROR}},
    }  # fmt: skip


def _version() -> str:
    try:
        return version("gpuwise")
    except PackageNotFoundError:
        return "0"


def _get(verb: str, media: str, schema: Json) -> Json:
    failures = {status: {"description": text, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Error"}}}} for status, text in FAILURES.items()}  # fmt: skip
    return {
        "operationId": f"{verb}_{media.rpartition('/')[2]}",
        "summary": QUESTIONS[verb],
        "parameters": [_parameter(option) for option in asked(verb).values() if option.kind not in FILES],
        "responses": {"200": {"description": "The answer.", "content": {media: {"schema": schema}}}, **failures},
    }


def _parameter(option: Option) -> Json:
    text: Json = {"type": "string"}
    if choices := CHOICES.get(option.kind):
        text["description"] = "One of " + ", ".join(choices)
    if option.kind == "flag":
        text = {"type": "string", "enum": ["true", "false"]}
    schema = {"type": "array", "items": text} if option.repeats else text
    found: Json = {"name": option.name, "in": "query", "required": False, "description": option.help, "schema": schema}
    if option.repeats:
        found |= {"style": "form", "explode": True}
    if option.example:
        found["example"] = [option.example] if option.repeats else option.example
    return found
