"""What `data list --csv` prints is the same offers with the same bills when it is read again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuwise.catalogue import Catalogue, join
from gpuwise.cost.annuity import owned_offers
from gpuwise.cost.billing import Terms, Use, bill_usd, share_usd, terms
from gpuwise.model import Offer
from gpuwise.render.data import csv_text
from gpuwise.store import package
from gpuwise.store.cache import Loaded
from gpuwise.store.facts import Facts
from gpuwise.store.tables import parse_offers
from gpuwise.view.offers import offer_columns
from gpuwise.view.page import tabulate

HOURS = (0.01, 0.9, 17.3, 900.0, 30_000.0)


def objects(catalogue: Catalogue) -> list[Offer]:
    return [catalogue.offer(row) for row in range(len(catalogue))]


def again(catalogue: Catalogue, facts: Facts) -> Loaded:
    text = csv_text(tabulate("", offer_columns(None), objects(catalogue)))
    return parse_offers(text.encode(), "x.csv", facts, own=True)


def billed(catalogue: Catalogue) -> Terms:
    nothing, price = np.zeros(len(catalogue)), catalogue.price_usd_per_hour
    return terms(catalogue, price_usd_per_hour=price, prepaid_h=nothing, step_unknown_s=3600.0, hours_per_month=300.0)


@pytest.fixture(scope="module")
def listed() -> Catalogue:
    """Every bundled offer of every day, and the example machines."""
    return join([package.offers(), owned_offers(package.machines())])


def test_every_bundled_offer_reads_back_as_the_same_offer(listed: Catalogue, facts: Facts) -> None:
    loaded = again(listed, facts)
    assert loaded.catalogue.rejects == ()
    assert [n for n in map(str, loaded.notes) if "repeat" in n or "not used" in n] == []
    for was, found in zip(objects(listed), objects(loaded.catalogue), strict=True):
        exact = {"price_usd_per_hour": found.price_usd_per_hour}  # compared below
        assert replace(was, **exact) == found  # type: ignore[arg-type]


def test_every_bundled_offer_reads_back_with_the_same_bill(listed: Catalogue, facts: Facts) -> None:
    before, after = billed(listed), billed(again(listed, facts).catalogue)
    for hours in HOURS:
        used = np.full(len(listed), hours * 3600.0)
        np.testing.assert_allclose(bill_usd(before, Use(used_s=used)), bill_usd(after, Use(used_s=used)), rtol=1e-12)
        np.testing.assert_allclose(share_usd(before, used), share_usd(after, used), rtol=1e-12)
    assert before.billable.tolist() == after.billable.tolist()


def test_a_list_that_was_read_twice_is_written_the_same_again(facts: Facts) -> None:
    text = """provider,instance,gpu,gpus,nodes,price,currency,price_unit,market,term_h,upfront,tax,vat_fraction,note
here,two,A100,8,2,20,EUR,hour,on-demand,,,gross,0.19,
here,month,T4,1,1,300,EUR,month,,,,net,,
here,odd,H101,1,1,3,USD,hour,spot,,,,,cheap
here,term,T4,1,1,8000,EUR,term,reserved,8760,900,net,,
aws,p3.2xlarge,V100,3,1,9,USD,hour,on-demand,,,net,,
"""
    first = parse_offers(text.encode(), "mine.csv", facts).catalogue
    second = again(first, facts).catalogue
    assert second.rejects == ()
    assert (second.accelerators.tolist(), second.nodes.tolist()) == ([8, 1, 1, 1, 3], [2, 1, 1, 1, 1])
    for was, found in zip(objects(first), objects(second), strict=True):
        assert found.price_usd_per_hour == pytest.approx(was.price_usd_per_hour, rel=1e-12)
        near = {"price_usd_per_hour": was.price_usd_per_hour, "source": was.source}
        assert replace(found, **near) == was  # type: ignore[arg-type]
