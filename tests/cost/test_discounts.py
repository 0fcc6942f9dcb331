"""Agreements: who is covered, until when, and what they change."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from gpuwise.catalogue import from_rows
from gpuwise.cost.discounts import Commitment, Credit, Discounts, Rate, Scope

DAY = date(2026, 11, 30)
OFFERS = from_rows(
    "test",
    "1",
    [
        {"provider": "aws", "instance": "p5", "market": "on-demand", "price_usd_per_hour": 50.0},
        {"provider": "aws", "instance": "g6", "market": "spot", "price_usd_per_hour": 1.0},
        {"provider": "lambda", "instance": "h100", "market": "on-demand", "price_usd_per_hour": np.nan},
    ],
)


def test_a_rate_covers_only_what_its_scope_names():
    rates = [Rate(scope=Scope(provider="aws", market="on-demand"), off_fraction=0.2)]
    assert Discounts(rates=rates).price_usd_per_hour(OFFERS, DAY)[:2] == pytest.approx([40.0, 1.0])


def test_the_rate_named_last_holds_and_a_lapsed_one_does_not():
    aws = Scope(provider="aws")
    rates = [
        Rate(scope=aws, off_fraction=0.5),
        Rate(scope=aws, off_fraction=0.1),
        Rate(scope=aws, off_fraction=0.9, until=date(2026, 11, 29)),
    ]
    assert Discounts(rates=rates).price_usd_per_hour(OFFERS, DAY)[0] == pytest.approx(45.0)


def test_an_agreed_price_makes_an_unknown_price_known_and_a_percentage_does_not():
    quoted = Scope(provider="lambda")
    assert Discounts(rates=[Rate(scope=quoted, price_usd_per_hour=2.0)]).price_usd_per_hour(OFFERS, DAY)[2] == 2.0
    assert np.isnan(Discounts(rates=[Rate(scope=quoted, off_fraction=0.2)]).price_usd_per_hour(OFFERS, DAY)[2])


def test_committed_hours_belong_to_their_instance():
    commitments = [Commitment(scope=Scope(provider="aws", instance="p5"), left_h=100)]
    assert list(Discounts(commitments=commitments).committed_h(OFFERS, DAY)) == [100, 0, 0]


@pytest.mark.parametrize(("gross", "granted", "net"), [(300, 300, 0), (600, 600, 0), (900, 800, 100)])
def test_uc_087_credits_pay_a_bill_and_never_hide_it(gross, granted, net):
    paid = Discounts(credits=[Credit(provider="aws", left_usd=granted)]).credit_usd("aws", gross, DAY)
    assert (paid, gross - paid) == (granted, net)


def test_a_lapsed_credit_pays_nothing():
    lapsed = Credit(provider="aws", left_usd=500, until=date(2026, 11, 29))
    assert Discounts(credits=[lapsed]).credit_usd("aws", 100, DAY) == 0
