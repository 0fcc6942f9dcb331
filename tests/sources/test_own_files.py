"""What a person keeps in files: read as meant, or refused with file, line, key and what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gpuwise.catalogue import from_rows
from gpuwise.cost.discounts import Discounts
from gpuwise.errors import DataError
from gpuwise.model import Source
from gpuwise.render.toml import workload_toml
from gpuwise.sources import file
from gpuwise.store import package
from gpuwise.store.facts import Facts
from gpuwise.workloads import FAMILIES

TODAY = date(2026, 11, 30)

WORKLOAD = """
name = "mine"
family = "cnn"
gmacs = 4.1
activations_m = 11.1
parameters_m = 25.6
batch_per_accelerator = 64
precision = "amp"
samples = 1000
epochs = 3
"""

MACHINE = """
[[machine]]
name = "under the desk"
accelerator = "RTX 3090"
accelerators = 2
capex_usd = 3000
residual_usd = 300
life_years = 4
power_w = 800
pue = 1.0
electricity_usd_per_kwh = 0.2
hosting_usd_per_month = 0
staff_usd_per_month = 0
discount_fraction = 0.1
"""

MEASUREMENT = {
    "schema": 1,
    "kind": "measurement",
    "created_utc": "2026-11-30T09:00:00Z",
    "workload": "painter-heavy",
    "device": "gpu",
    "accelerator": "NVIDIA A100-SXM4-40GB",
    "accelerators": 1,
    "precision": "amp",
    "batch_per_accelerator": 64,
    "samples_per_s": {"value": 500.0, "low": 490.0, "high": 511.0},
    "peak_memory_gib": None,
    "peak_memory_gib_reason": "the driver does not say",
}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


Written = Callable[[str, str], Path]


def test_a_workload_is_read_and_what_it_leaves_out_is_named_as_assumed(written: Written) -> None:
    workload = file.workload(written("w.toml", WORKLOAD))
    assert (workload.name, workload.title, workload.total_samples) == ("mine", "mine", 3000)
    assert workload.source == Source(kind="quoted", ref="w.toml")
    assert set(workload.assumed) == {"state_bytes_per_parameter"}
    assert workload.accuracy_fraction is None
    assert "accuracy_fraction" in workload.reasons


def test_a_workload_without_name_is_called_like_its_file(written: Written) -> None:
    text = (
        "[workload]\n" + WORKLOAD.replace('name = "mine"', "") + 'measured_as = ["resnet50"]\naccuracy_fraction = 0.7\n'
    )
    workload = file.workload(written("night-watch.toml", text))
    assert (workload.name, workload.measured_as, workload.accuracy_fraction) == ("night-watch", ("resnet50",), 0.7)
    assert workload.reasons == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("samples", "smaples", r"w\.toml, line 9: smaples is not a key that is known here\. Did you mean samples\?"),
        ('precision = "amp"', "", "precision is missing"),
        ("epochs = 3", "[early_stop]\nleast_epochs = 9\nmost_epochs = 5\npatience_epochs = 2", "can never be followed"),
        ("epochs = 3", "epochs = 0", r"line 10: epochs is 0: it has to be above 0"),
        ("samples = 1000", "samples = -5", "line 9: samples is -5"),
        ("samples = 1000", "samples = 10.5", "line 9: samples is not a whole number"),
        ("samples = 1000", 'samples = "1000"', "line 9: samples is not a whole number"),
        ("gmacs = 4.1", "gmacs = nan", "line 4: gmacs is nan, which is no number"),
        ("gmacs = 4.1", "gmacs = inf", "line 4: gmacs is inf"),
        ('precision = "amp"', 'precision = "fp12"', "line 8: precision is refused .*fp32"),
        ("epochs = 3", "epochs = 3\naccuracy_fraction = 76", "accuracy_fraction is 76: a share is at most 1"),
        ('family = "cnn"', 'family = "cnnn"', r'line 3: family is "cnnn", which nobody knows here\. Did you mean cnn'),
        ('family = "cnn"', 'family = "vision"', r"Use cnn, cnn-detection, transformer"),
        ('precision = "amp"', 'precision = "amp"\nmode = "guess"', "mode is refused .*infer"),
        (
            "epochs = 3",
            'epochs = 3\ntitle = "\\u001b[31mred"',
            r"line 11: title holds a control character\. Take it out",
        ),
        ("epochs = 3", "epochs = ", "line 10: no TOML"),
        ("epochs = 3", "[[x", "line 10: no TOML"),
    ],
)
def test_a_faulty_workload_is_one_error_with_line_key_and_rule(
    old: str, new: str, message: str, written: Written
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        file.workload(written("w.toml", WORKLOAD.replace(old, new)))
    assert caught.value.file == "w.toml"


def test_every_family_of_the_measured_and_the_built_in_workloads_is_known() -> None:
    measured = {row["family"] for row in package.tables()["throughput"]}
    assert measured <= set(FAMILIES)
    assert {workload.family for workload in package.workloads().values()} <= set(FAMILIES)


def test_every_built_in_workload_is_read_back_as_it_was_written(written: Written) -> None:
    for workload in package.workloads().values():
        again = file.workload(written("w.toml", workload_toml(workload)))
        assert (again.measured_as, again.family, again.launches) == (
            workload.measured_as,
            workload.family,
            workload.launches,
        )


def test_a_machine_is_read_with_its_card_as_an_id(written: Written, facts: Facts) -> None:
    (machine,) = file.machines(written("m.toml", MACHINE), facts)
    assert (machine.accelerator, machine.capex_usd, machine.example) == ("rtx-3090", 3000.0, False)


def test_the_country_of_a_machine_is_a_code_in_any_case(written: Written, facts: Facts) -> None:
    (machine,) = file.machines(written("m.toml", MACHINE + 'country = "de"\n'), facts)
    assert machine.country == "DE"


def test_the_bundled_machines_may_serve_as_a_pattern(written: Written, facts: Facts) -> None:
    text = package.contents()["machines.toml"].decode()
    assert [m.name for m in file.machines(written("m.toml", text), facts)] == [m.name for m in package.machines()]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pue = 1.0", "pue = 0.9", r"line 10: machine\[1\]\.pue is 0\.9: a facility draws at least"),
        ("residual_usd = 300", "residual_usd = 4000", r"machine\[1\]\.residual_usd is above capex_usd"),
        ("RTX 3090", "RTX 3909", r'machine\[1\]\.accelerator "RTX 3909" is no GPU that is known here\. Did you mean'),
        ("RTX 3090", "A100", r'"A100" may be several\. Write one of a100-pcie-40gb'),
        (
            "pue = 1.0",
            'pue = 1.0\ncountry = "Germany"',
            r'line 11: machine\[1\]\.country is "Germany", no .*mean DE \(',
        ),
        ("pue = 1.0", 'pue = 1.0\ncountry = "UK"', r"Did you mean GB \(United Kingdom\)\?"),
        ("[[machine]]", "[machine]", r"machine is not a list\. Begin each entry with \[\[machine\]\]"),
        ("[[machine]]", "[[machines]]", "machines is not a key that is known here. Did you mean machine"),
        (MACHINE, "", "holds none of the tables machine"),
    ],
)
def test_a_faulty_machine_is_one_error(old: str, new: str, message: str, written: Written, facts: Facts) -> None:
    with pytest.raises(DataError, match=message):
        file.machines(written("m.toml", MACHINE.replace(old, new)), facts)


OFFERS = from_rows("in play", "1", [
    {"provider": provider, "instance": instance, "region": region, "market": "on-demand", "accelerator": gpu}
    for provider, instance, region, gpu in (
        ("aws", "p4de.24xlarge", "us-east-1", "a100-sxm4-80gb"),
        ("aws", "g4dn.xlarge", "us-east-1", "t4"),
        ("AWS", "g4dn.xlarge", "eu-west-1", "t4"),
        ("gcp", "a2-highgpu-1g", "us-central1", "a100-sxm4-40gb"),
        ("lambda", "gpu_1x_a10", None, "a10"),
    )
])  # fmt: skip


def agreed(text: str, written: Written, facts: Facts) -> Discounts:
    return file.discounts(written("d.toml", text), facts, OFFERS, TODAY)[0]


def test_agreements_are_read_with_scope_and_expiry(written: Written, facts: Facts) -> None:
    text = """
[[rate]]
provider = "lambda"
accelerator = "A100-80GB"
off_fraction = 0.15
until = 2027-01-01

[[rate]]
provider = "gcp"
instance = "a2-highgpu-1g"
price_usd_per_hour = 2.10

[[commitment]]
provider = "lambda"
left_h = 40

[[credit]]
provider = "gcp"
left_usd = 300
until = 2026-12-31
"""
    found = agreed(text, written, facts)
    scopes = [rate.scope.accelerator for rate in found.rates if rate.scope.provider == "lambda"]
    assert scopes == ["a100-pcie-80gb", "a100-sxm4-80gb", "a100-pcie-80gb|a100-sxm4-80gb"]
    assert {rate.until for rate in found.rates} == {date(2027, 1, 1), None}
    assert found.rates[-1].price_usd_per_hour == 2.10
    assert [(c.scope.provider, c.left_h) for c in found.commitments] == [("lambda", 40.0)]
    assert [(c.left_usd, c.until) for c in found.credits] == [(300.0, date(2026, 12, 31))]


@pytest.mark.parametrize("provider", ["aws", "AWS", "Aws", " aws "])
def test_an_agreement_holds_for_its_provider_in_every_spelling_of_the_offers(
    provider: str, written: Written, facts: Facts
) -> None:
    where = f'provider = "{provider}"'
    text = f"""
[[rate]]
{where}
instance = "G4DN.xlarge"
off_fraction = 0.5
[[commitment]]
{where}
region = "EU-West-1"
left_h = 3
[[credit]]
{where}
left_usd = 5
"""
    found = agreed(text, written, facts)
    rated, _ = found.covered(OFFERS, TODAY)
    assert rated.tolist() == [False, True, True, False, False]
    assert found.committed_h(OFFERS, TODAY).tolist() == [0, 0, 3, 0, 0]
    assert [found.credit_usd(name, 100.0, TODAY) for name in ("aws", "AWS", "gcp")] == [5, 5, 0]


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (
            'provider = "amazon"',
            r'line 2: rate\[1\]\.provider "amazon" is no provider of any offer\. Did you mean aws\?',
        ),
        ('provider = "gpc"', r"Did you mean gcp\? There are 4: gpuwise data list --by provider"),
        ('provider = "elsewhere"', r'"elsewhere" is no provider of any offer\. There are 4'),
        (
            'provider = "aws"\ninstance = "g4dn.xlrge"',
            r'line 3: .*"g4dn.xlrge" is no instance of aws\. Did you mean g4dn\.x',
        ),
        (
            'provider = "gcp"\ninstance = "g4dn.xlarge"',
            r'"g4dn.xlarge" is no instance of gcp\. There are 1: gpuwise data',
        ),
        ('provider = "aws"\nregion = "us-east"', r'"us-east" is no region of aws\. Did you mean us-east-1\?'),
        ('provider = "lambda"\nregion = "us-east-1"', r'"us-east-1" is no region of lambda\. There are 0'),
        ('provider = "aws"\nmarket = "spott"', r"market is refused .*spot"),
    ],
)
def test_an_agreement_about_what_nobody_offers_is_refused_with_the_nearest(
    scope: str, message: str, written: Written, facts: Facts
) -> None:
    with pytest.raises(DataError, match=message):
        agreed(f"[[rate]]\n{scope}\noff_fraction = 0.1\n", written, facts)


@pytest.mark.parametrize("provider", ["amazon", "gpc"])
def test_a_credit_or_quota_of_an_unknown_provider_is_refused(provider: str, written: Written, facts: Facts) -> None:
    with pytest.raises(DataError, match=r"d\.toml, line 2: credit\[1\]\.provider .* Did you mean"):
        agreed(f'[[credit]]\nprovider = "{provider}"\nleft_usd = 3\n', written, facts)
    with pytest.raises(DataError, match=r"q\.toml, line 2: quota\[1\]\.provider .* Did you mean"):
        file.quotas(written("q.toml", f'[[quota]]\nprovider = "{provider}"\naccelerators = 3\n'), facts, OFFERS)


def test_an_agreement_without_effect_is_noted_with_file_and_line(written: Written, facts: Facts) -> None:
    text = """[[rate]]
provider = "aws"
off_fraction = 0.5
until = 2026-11-29
[[rate]]
provider = "aws"
off_fraction = 0.5
until = 2026-11-30
[[commitment]]
provider = "gcp"
accelerator = "T4"
left_h = 3
[[credit]]
provider = "gcp"
left_usd = 3
until = 2020-01-01
"""
    _, notes = file.discounts(written("d.toml", text), facts, OFFERS, TODAY)
    assert [str(note) for note in notes] == [
        "d.toml, line 1: rate[1] ended on 2026-11-29 and is not used",
        "d.toml, line 9: commitment[1] covers no offer",
        "d.toml, line 13: credit[1] ended on 2020-01-01 and is not used",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[rate]]\nprovider = "aws"', r"rate\[1\] states both or neither of off_fraction and price_usd_per_hour"),
        (
            '[[rate]]\nprovider="aws"\noff_fraction=0.1\n[[rate]]\nprovider="aws"\noff_fraction=15',
            r"line 6: rate\[2\]\.off_fraction is 15: a share is at most 1",
        ),
        ('[[credit]]\nprovider = "aws"\nleft_usd = 3\nuntil = "soon"', r"line 4: credit\[1\]\.until"),
        ("[[credit]]\nprovider = 7\nleft_usd = 3", r"credit\[1\]\.provider is not a text in quotes"),
        ("[[commitment]]\nleft_h = 3", r"commitment\[1\]\.provider is missing"),
    ],
)
def test_a_faulty_agreement_is_one_error(text: str, message: str, written: Written, facts: Facts) -> None:
    with pytest.raises(DataError, match=message):
        agreed(text, written, facts)


def test_quotas_are_read_for_each_card_that_the_name_may_be(written: Written, facts: Facts) -> None:
    text = """
[[quota]]
provider = "GCP"
accelerator = "T4"
accelerators = 8
region = "US-CENTRAL1"

[[quota]]
provider = "gcp"
accelerators = 2
"""
    quotas = file.quotas(written("q.toml", text), facts, OFFERS)
    stated = [(q.provider, q.region, q.accelerator, q.accelerators) for q in quotas]
    assert stated == [("gcp", "us-central1", "t4", 8), ("gcp", None, None, 2)]


def test_a_new_account_may_have_a_quota_of_no_gpus_and_no_less(written: Written, facts: Facts) -> None:
    text = '[[quota]]\nprovider = "aws"\naccelerators = {}\n'
    assert {q.accelerators for q in file.quotas(written("q.toml", text.format(0)), facts, OFFERS)} == {0}
    with pytest.raises(DataError, match=r"line 3: quota\[1\]\.accelerators is -1"):
        file.quotas(written("q.toml", text.format(-1)), facts, OFFERS)


def test_a_measured_run_is_read_and_reasons_beside_it_are_passed_over(written: Written, facts: Facts) -> None:
    run = file.measurement(written("run.json", json.dumps(MEASUREMENT)), facts)
    assert run.accelerator == "a100-sxm4-40gb"
    assert run.samples_per_s is not None
    assert run.samples_per_s.high == 511.0
    assert run.peak_memory_gib is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema is 2; this gpuwise reads 1"),
        ({"kind": "rank"}, 'its "kind" is not "measurement"'),
        ({"samples_per_s": {"value": 5.0, "low": 6.0, "high": 7.0}}, "samples_per_s has a value outside its interval"),
        ({"samples_per_s": {"value": -5.0, "low": 1.0, "high": 7.0}}, r"samples_per_s\.value is -5"),
        ({"samples_per_s": {"value": 5.0, "low": 1.0}}, r"samples_per_s\.high is missing"),
        ({"device": "abacus"}, "device is refused"),
        ({"accelerator": "H101"}, '"H101" is no GPU that is known here'),
        ({"acelerators": 1}, "acelerators is not a key that is known here. Did you mean accelerators"),
    ],
)
def test_a_faulty_measured_run_is_one_error(
    change: dict[str, object], message: str, written: Written, facts: Facts
) -> None:
    with pytest.raises(DataError, match=message):
        file.measurement(written("run.json", json.dumps(MEASUREMENT | change)), facts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1,\n "kind": }', r"run\.json, line 2: no JSON"),
        ('{"schema": 1,\n\n "gmacs": NaN}', r"run\.json, line 3: no JSON \(NaN is no number of JSON\)"),
        ("[]", "is no measured run"),
        ("", "line 1: no JSON"),
    ],
)
def test_a_file_that_is_no_json_names_the_line(text: str, message: str, written: Written, facts: Facts) -> None:
    with pytest.raises(DataError, match=message):
        file.measurement(written("run.json", text), facts)


OFFER_TOML = """
[[offer]]
provider = "mine"
gpu = "T4"
price = 0.5
currency = "EUR"
observed = 2026-10-01

[[offer]]
gpu = "T4"
price = 0.5
"""


def test_offers_may_be_written_in_toml_with_the_columns_as_keys(written: Written, facts: Facts) -> None:
    catalogue = file.offers(written("mine.toml", OFFER_TOML), facts).catalogue
    offer = catalogue.offer(0)
    assert (offer.provider, offer.accelerator, offer.observed) == ("mine", "t4", date(2026, 10, 1))
    assert [str(r) for r in catalogue.rejects] == [
        "mine.toml, line 9: currency: an amount without currency is not read"
    ]


def test_uc_080_offers_in_json_keep_sound_rows_and_name_the_faulty_one(written: Written, facts: Facts) -> None:
    rows = [
        {"gpu": "T4", "price": 0.5, "currency": "USD", "gpu_arch2": "x"},
        {"gpu": "T4", "price": "1,10", "currency": "USD"},
        {"gpu": "T4", "price": 0.7, "currency": "USD", "cpu": 4},
    ]
    loaded = file.offers(written("mine.json", json.dumps(rows, indent=1)), facts)
    found = [loaded.catalogue.offer(i) for i in range(len(loaded.catalogue))]
    assert [(o.price_usd_per_hour, o.vcpus) for o in found] == [(0.5, None), (0.7, 4)]
    assert str(loaded.catalogue.rejects[0]).startswith('mine.json, line 8: price: "1,10"')
    assert "mine.json: columns not known and not used: gpu_arch2" in map(str, loaded.notes)


@pytest.mark.parametrize("name", ["mine.toml", "mine.json"])
def test_characters_that_steer_a_terminal_are_taken_out_of_offers_with_a_note(
    name: str, written: Written, facts: Facts
) -> None:
    rows = [{"provider": "\u001b[31mred", "gpu": "T4", "price": 1, "currency": "USD"}]
    toml = '[[offer]]\nprovider = "\\u001b[31mred"\ngpu = "T4"\nprice = 1\ncurrency = "USD"\n'
    loaded = file.offers(written(name, toml if name.endswith("toml") else json.dumps(rows)), facts)
    assert loaded.catalogue.offer(0).provider == "[31mred"
    note = f"{name}: 1 control characters were taken out, the first in line"
    assert any(str(n).startswith(note) for n in loaded.notes)


def test_several_files_are_one_catalogue_in_their_order(written: Written, facts: Facts) -> None:
    one = written("one.csv", "gpu,price,currency\nT4,1,USD\n")
    two = written("two.csv", "gpu,price,currency\nL4,2,USD\n")
    loaded = file.FileSource([one, two]).load(facts, TODAY)
    assert [loaded.catalogue.offer(i).provider for i in range(2)] == ["one", "two"]
    assert len(loaded.notes) == 4


READER = """
import sys
from pathlib import Path
from gpuwise.sources import file
from gpuwise.store import package
offer = file.offers(Path(sys.argv[1]), package.facts()).catalogue.offer(0)
sys.stdout.buffer.write(f"{offer.provider} {offer.note}".encode())
"""


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_uc_121_names_and_texts_of_any_script_are_read_under_any_locale(locale: str, tmp_path: Path) -> None:
    path = tmp_path / "Läufe" / "実験 №1" / "ставка.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes("gpu,price,currency,note\nT4,1,USD,ü € 🚀\n".encode())
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    run = subprocess.run(
        [sys.executable, "-c", READER, str(path.relative_to(tmp_path))],
        cwd=tmp_path,
        env=environment | {"LC_ALL": locale, "LANG": locale},
        capture_output=True,
        check=False,
    )
    assert run.stderr.decode() == ""
    assert run.stdout.decode() == "ставка ü € 🚀"
