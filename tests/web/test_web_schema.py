"""The OpenAPI description is true: whatever it allows, the server answers as it says, and never with a fault."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, settings

from gpuwise.request import options
from gpuwise.web import description
from gpuwise.web.asked import VERBS, asked

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.checks import load_all_checks  # noqa: E402
from schemathesis.specs.openapi import checks as rules  # noqa: E402

load_all_checks()
UNFIT = [
    rules.positive_data_acceptance,  # a text that its schema allows may still be no duration, no GPU, no day
    rules.negative_data_rejection,  # a flag is read as on the command line: yes, on and 1 count too
]
SCHEMA = schemathesis.openapi.from_dict(description.document()).exclude(path_regex=r"\.md$")
"""Markdown differs from CSV in the last step alone."""


@SCHEMA.parametrize()
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_answer_is_as_the_description_says(case, client):
    if "fresh" in (case.query or {}):
        case.query["fresh"] = "false"  # true computes for minutes
    case.call_and_validate(base_url=str(client.base_url), excluded_checks=UNFIT)


def test_the_description_is_served_and_has_every_option_of_every_verb(client):
    found = client.get("/openapi.json").json()
    assert found == json.loads(json.dumps(description.document()))
    for verb in VERBS:
        operations = found["paths"][f"/{verb}.json"]
        said = {one["name"] for one in operations["get"]["parameters"]}
        sent = set()
        if "post" in operations:
            sent = set(operations["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"])
        assert said | sent == set(asked(verb))
        refused = {name for name, one in options(_request(verb)).items() if one.field in ("watch", "live")}
        assert (said | sent) & refused == set()


def _request(verb):
    from gpuwise import request

    return getattr(request, f"{verb.capitalize()}Request")
