"""The OpenAPI description of what a program may ask, made from the request types."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpuwise.request import CHOICES, Option
from gpuwise.web.asked import DEFAULTS, FETCH, FILES, VERBS, asked, uploads
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
    "400": "A form that cannot be read.", "401": "The token is missing.", "403": "From a page of another host.",
    "404": "Nothing supports an answer.", "413": "Too large.", "421": "Not a name of this server.",
    "422": "Something that was said cannot be used.", "500": "A fault of the server.", "503": "Given up.",
}  # fmt: skip
TABLES = {"csv": "text/csv", "md": "text/markdown"}
KEPT: Json = {
    "type": "object",
    "required": ["schema", "run"],
    "properties": {"schema": {"const": 1}, "run": {"type": "integer", "minimum": 1}},
}


def document() -> Json:
    """OpenAPI 3.1."""
    paths: Json = {}
    for verb in VERBS:
        paths[f"/{verb}.json"] = _asking(verb, "application/json", {"$ref": "#/components/schemas/Answer"})
        for form, media in TABLES.items():
            paths[f"/{verb}.{form}"] = _asking(verb, media, {"type": "string"})
    paths["/runs"] = {**_asking("runs", "text/html", {"type": "string"}), "put": _keeping()}
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


def _asking(verb: str, media: str, schema: Json) -> Json:
    """A question by GET; by POST where files go with it."""
    name = f"{verb}_{media.rpartition('/')[2]}"
    parameters = [_parameter(verb, option) for option in asked(verb).values() if option.kind not in FILES]
    content = {media: {"schema": schema}}
    responses = {"200": {"description": "The answer.", "content": content}, **_failures(page=media == "text/html")}
    shared = {"summary": QUESTIONS[verb], "parameters": parameters, "responses": responses}
    found = {"get": {"operationId": name, **shared}}
    if files := uploads(verb):
        found["post"] = {"operationId": f"{name}_with_files", **shared, "requestBody": _form(files)}
    return found


def _failures(*, page: bool = False) -> Json:
    content: Json = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    content |= {"text/html": {"schema": {"type": "string"}}} if page else {}
    return {status: {"description": text, "content": content} for status, text in FAILURES.items()}


def _form(files: Mapping[str, Option]) -> Json:
    file: Json = {"type": "string", "contentMediaType": "application/octet-stream"}
    properties = {
        name: {"description": option.help, **({"type": "array", "items": file} if option.repeats else file)}
        for name, option in files.items()
    }
    return {"required": False, "content": {"multipart/form-data": {
        "schema": {"type": "object", "properties": properties}}}}  # fmt: skip


def _keeping() -> Json:
    answer = {"201": {"description": "The number of the run, which is kept.", "content": {
        "application/json": {"schema": KEPT}}}}  # fmt: skip
    record = {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "run"}}}
    return {
        "operationId": "keep_run",
        "summary": "Keep the record of a run, as gpuwise measure --out writes it.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": record}}},
        "responses": {**answer, **_failures()},
    }


def _parameter(verb: str, option: Option) -> Json:
    text: Json = {"type": "string"}
    if choices := [name for name in CHOICES.get(option.kind, ()) if not (verb == "data" and name == FETCH)]:
        text["description"] = "One of " + ", ".join(choices)
    if option.kind == "flag":
        text = {"type": "string", "enum": ["true", "false"]}
    schema = {"type": "array", "items": text} if option.repeats else text
    found: Json = {
        "name": option.name, "in": "query", "description": option.help, "schema": schema,
        "required": option.required and option.name not in DEFAULTS.get(verb, {}) and option.name not in uploads(verb),
    }  # fmt: skip
    if option.repeats:
        found |= {"style": "form", "explode": True}
    if option.example:
        found["example"] = [option.example] if option.repeats else option.example
    return found
