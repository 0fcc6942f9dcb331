"""What is in use against the table of services."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise.asset import Service
from gpuwise.errors import InvalidInput
from gpuwise.own.checklist import Use, checklist, cloud

DAY = date(2026, 12, 1)


def service(name, portability="A", provider="aws", **changes):
    figures = {
        "provider": provider, "name": name, "names": (name.casefold(), f"amazon {name.casefold()}"), "category": "x",
        "gives": "x", "portability": portability, "replacement": "" if portability == "C" else "y",
        "effort_low_days": None, "effort_high_days": None, "valid_from": date(2026, 1, 1), "valid_until": None,
        "source": "project",
    }  # fmt: skip
    return Service(**{**figures, **changes})


TABLE = (service("S3"), service("DynamoDB", "C"), service("Bigtable", "C", "gcp"))


def test_the_score_is_the_share_of_class_c_and_what_nobody_knows_stands_beside_it():
    uses = [
        Use(provider="AWS", name="S3", usd=70.0),
        Use(provider="Amazon Web Services", name="Amazon DynamoDB", usd=20.0),
        Use(provider="AWS", name="My thing", usd=10.0),
    ]
    found = checklist(uses, TABLE, DAY)
    assert found.by_spend
    assert (found.lock_in_fraction, found.unknown_fraction) == (pytest.approx(0.2), pytest.approx(0.1))
    assert [item.service.name if item.service else None for item in found.items] == ["S3", "DynamoDB", None]


def test_without_amounts_services_count_alike():
    found = checklist([Use(provider=None, name="s3"), Use(provider=None, name="dynamodb")], TABLE, DAY)
    assert not found.by_spend
    assert found.lock_in_fraction == pytest.approx(0.5)


def test_a_service_is_looked_for_at_its_own_provider_only():
    (item,) = checklist([Use(provider="Google Cloud", name="S3", usd=1.0)], TABLE, DAY).items
    assert item.service is None


def test_a_name_of_two_providers_asks_whose_it_is():
    table = (*TABLE, service("AutoML", "C", "gcp"), service("AutoML", "C", "azure"))
    with pytest.raises(InvalidInput, match="azure, gcp"):
        checklist([Use(provider=None, name="AutoML")], table, DAY)
    (item,) = checklist([Use(provider="gcp", name="AutoML")], table, DAY).items
    assert item.service.provider == "gcp"


def test_of_two_rows_the_one_that_holds_on_the_day_counts():
    old = service("S3", "C", valid_until=date(2026, 6, 30))
    new = service("S3", "A", valid_from=date(2026, 7, 1))
    for day, portability in ((date(2026, 6, 30), "C"), (date(2026, 7, 1), "A")):
        (item,) = checklist([Use(provider="aws", name="S3", usd=1.0)], (new, old), day).items
        assert item.service.portability == portability


@pytest.mark.parametrize(
    ("spelled", "ours"),
    [
        ("Amazon Web Services", "aws"),
        ("AWS", "aws"),
        ("Microsoft", "azure"),
        ("Google Cloud", "gcp"),
        ("Oracle", "oci"),
        ("Scaleway", "scaleway"),
    ],
)
def test_providers_of_bills_are_ours(spelled, ours):
    assert cloud(spelled) == ours


@given(st.lists(st.tuples(st.sampled_from(["S3", "DynamoDB", "other"]), st.floats(-10, 1e9)), min_size=1, max_size=9))
def test_shares_add_up_and_the_score_is_one_of_them(rows):
    found = checklist([Use(provider="aws", name=name, usd=usd) for name, usd in rows], TABLE, DAY)
    assert sum(item.fraction for item in found.items) == pytest.approx(1)
    assert 0 <= found.lock_in_fraction <= 1 - found.unknown_fraction + 1e-9
