"""What one row of a FOCUS export is, in SQL: its moments, its kind, its machine, its GPU-hours; then sums of like rows.

A row's GPUs: GpuCount of SkuPriceDetails, or those of its instance type in the table of machines. Its hours:
ConsumedQuantity if its unit is one of time, else PricingQuantity. Its month: that of the middle of its charge period,
so that a day or a month that begins at midnight elsewhere stays where most of it is; of a date alone, that date's; of a
period longer than a month, that of its start.

Rows that repeat the hours of another row are not counted: licences and software on a machine, surcharges of
managed clusters, a publisher that is not the provider. Google bills the GPU by itself, and cores and memory beside it.

Every text here is a constant: what a person or a file says comes in as a parameter or as a value of a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwise.units import HOURS_PER_DAY, SECONDS_PER_HOUR

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "provider": ("ServiceProviderName", "ProviderName", "HostProviderName"),
    "publisher": ("PublisherName",),
    "service": ("ServiceName",),
    "service_category": ("ServiceCategory",),
    "region": ("RegionId", "RegionName"),
    "charge": ("ChargeCategory",),
    "charge_class": ("ChargeClass",),
    "description": ("ChargeDescription",),
    "currency_text": ("BillingCurrency",),
    "start_text": ("ChargePeriodStart",),
    "end_text": ("ChargePeriodEnd",),
    "invoice_text": ("BillingPeriodStart",),
    "billed_text": ("BilledCost",),
    "effective_text": ("EffectiveCost",),
    "listed_text": ("ListCost",),
    "contracted_text": ("ContractedCost",),
    "consumed_text": ("ConsumedQuantity",),
    "consumed_unit": ("ConsumedUnit",),
    "priced_text": ("PricingQuantity",),
    "priced_unit": ("PricingUnit",),
    "pricing_category": ("PricingCategory",),
    "commitment": ("CommitmentDiscountId",),
    "commitment_category": ("CommitmentDiscountCategory",),
    "commitment_type": ("CommitmentDiscountType",),
    "commitment_status": ("CommitmentDiscountStatus",),
    "reservation_status": ("CapacityReservationStatus",),
    "details": ("SkuPriceDetails", "x_SkuDetails"),
    "count_text": ("x_GpuCount", "GpuCount"),
    "instance": ("x_InstanceType", "x_SkuInstanceType", "InstanceType"),
    "meter": ("SkuMeter", "x_SkuMeterName", "x_SkuDescription"),
    "resource_type": ("ResourceType", "x_ResourceType"),
}
"""What is read -> the columns that hold it, renamed from version to version; the first that has a value in a row."""
_JOINED = ("details", "meter", "resource_type")
NEEDED = (
    "provider", "service", "charge", "currency_text", "start_text", "end_text", "billed_text", "effective_text",
)  # fmt: skip

_STROKES = "^([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4})"
_YEARS = "TIMESTAMP '2000-01-01' AND TIMESTAMP '2100-01-01'"
"""Charge periods of clouds: a start in the year 1 is a slip, and would make hours without end."""
_HOURS = ("hour", "hours", "hr", "hrs", "h", "hour(s)")
UNITS: tuple[tuple[str, float, bool], ...] = (
    *((f"{of}{unit}", 1.0, of == "gpu ") for of in ("", "instance ", "vm ", "machine ", "gpu ") for unit in _HOURS),
    *((unit, HOURS_PER_DAY, False) for unit in ("day", "days")),
    *((unit, 1 / 60, False) for unit in ("minute", "minutes", "min", "mins")),
    *((unit, 1 / SECONDS_PER_HOUR, False) for unit in ("second", "seconds", "sec", "secs", "s")),
)
"""Unit, its hours, and whether it counts each GPU. Hours of vCPUs, memory or load balancers are not here."""

_AWS = r"[a-z]+[0-9]+[a-z0-9-]*\.(?:[0-9]*x?large|metal)"
_AZURE = r"(?:standard_)?n[cdgv][0-9]+(?:-[0-9]+)?[a-z]*(?:[ _][a-z]+[0-9]+[a-z0-9]*)*(?:[ _]promo)?"
_GOOGLE = r"(?:a[2-4]x?|g[2-4])-[a-z]+-[0-9]+g?"
MACHINE = rf"\b(?:{_AWS}|{_AZURE}|{_GOOGLE})\b"
GPU_FAMILY = r"^(?:p[2-9][a-z0-9-]*\.|g[2-9][a-z0-9-]*\.|n[cdgv][0-9]|(?:a[2-4]x?|g[2-4])-)"
_BESIDE = r"\b(?:core|cpu|ram|memory|commitment)\b"
_GOOGLE_MACHINE = r"\b(?:a[2-4](?:x|plus|mega|ultra)?|g[24])(?: custom)? (?:instance|vm)\b"
_GOOGLE_CARD = r"nvidia (.+?) gpu|\b([abhlv][0-9]+ [0-9]+gb) gpu|\b(rtx [0-9]+ [0-9]+gb) running"
_SPAN = "^(?:week|month|mo|year|yr|unit|each)s?$"
"""Units of a machine that do not tell its hours: a month of it may be the part of one in which it ran."""
_COUNT = """regexp_extract(details, '(?i)"(?:x_)?GpuCount" *: *"?([0-9.]+)', 1)"""
_TWICE = r"licen[cs]e|mapreduce|kubernetes|marketplace"
_UNUSED = r"\bunused (?:reservation|capacity)"
"""Capacity that was reserved and not used, as AWS describes it: FOCUS 1.0 has no column for it."""
_SOFTWARE = r"\bsoftware\b|marketplace"
_OUT = r"data transfer|egress|bandwidth|transfer out|outbound"
_WITHIN = r"transfer in\b|ingress|inbound|regional data transfer|availability zone|intra"

SCHEMA = """
CREATE TABLE facts (
    provider VARCHAR, service VARCHAR, service_category VARCHAR, region VARCHAR, currency VARCHAR, month VARCHAR,
    invoice VARCHAR, kind VARCHAR, unused BOOLEAN, pricing VARCHAR, role VARCHAR, machine VARCHAR, flow VARCHAR,
    commitment VARCHAR, commitment_category VARCHAR, commitment_type VARCHAR, status VARCHAR, why VARCHAR,
    accelerator VARCHAR, card VARCHAR, begin TIMESTAMP, finish TIMESTAMP, first TIMESTAMP, last TIMESTAMP,
    number_of BIGINT, effective DOUBLE, billed DOUBLE, listed DOUBLE, contracted DOUBLE, gpu_h DOUBLE, hours DOUBLE,
    odd BIGINT, whole BIGINT, elsewhere BIGINT
);
CREATE TEMP TABLE machines (name VARCHAR, accelerator VARCHAR, gpus DOUBLE);
CREATE TEMP TABLE units (unit VARCHAR, hours DOUBLE, each_gpu BOOLEAN);
"""


def _moment(text: str) -> str:
    """UTC of a text; NULL if it is none. $days: what comes first in days with strokes, '' if nobody says."""
    seconds = f"regexp_replace({text}, '([T ][0-9]{{2}}:[0-9]{{2}})(Z?|[+-][0-9]{{2}}:[0-9]{{2}})$', '\\1:00\\2')"
    return f"""CASE
        WHEN regexp_matches({text}, ':.*[+-]') THEN timezone('UTC', try_cast({seconds} AS TIMESTAMPTZ))
        WHEN {_strokes(text)} THEN CASE $days
            WHEN 'day first' THEN try_cast(regexp_replace({text}, '{_STROKES}', '\\3-\\2-\\1') AS TIMESTAMP)
            WHEN 'month first' THEN try_cast(regexp_replace({text}, '{_STROKES}', '\\3-\\1-\\2') AS TIMESTAMP) END
        WHEN length({text}) > 17 OR length({text}) = 10 THEN try_cast({text} AS TIMESTAMP)
        ELSE try_cast({seconds} AS TIMESTAMP) END"""


def _strokes(text: str) -> str:
    return f"regexp_matches({text}, '{_STROKES}')"


def _number(text: str) -> str:
    return f"CASE WHEN isfinite(try_cast({text} AS DOUBLE)) THEN try_cast({text} AS DOUBLE) END"


def _unit(text: str) -> str:
    """Without the number of a block of units, such as the 100 of Azure's "100 Hours"."""
    plain = f"replace(lower(trim({text})), '-', ' ')"
    return f"CASE WHEN {plain} < ':' THEN regexp_replace({plain}, '^[0-9]+ *', '') ELSE {plain} END"


def _block(text: str) -> str:
    return f"coalesce(try_cast(nullif(regexp_extract({text}, '^[0-9]+'), '') AS DOUBLE), 1)"


def _bare(text: str) -> str:
    """An instance type as the table of machines spells it: see `instances.bare`."""
    return rf"regexp_replace(replace(lower(trim({text})), ' ', '_'), '^(?:standard_|ml\.)', '')"


_TYPED = f"""
    SELECT *,
        {_moment("start_text")} AS any_start, CASE WHEN any_start BETWEEN {_YEARS} THEN any_start END AS start,
        {_moment("end_text")} AS any_stop, CASE WHEN any_stop BETWEEN {_YEARS} THEN any_stop END AS stop,
        upper(trim(currency_text)) AS currency, lower(trim(charge)) AS category,
        {_number("billed_text")} AS billed, {_number("effective_text")} AS effective
    FROM raw"""
_CHECKED = f"""
    SELECT *, CASE
        WHEN $days = '' AND ({_strokes("start_text")} OR {_strokes("end_text")}) THEN 'ambiguous'
        WHEN start IS NULL THEN 'start'
        WHEN stop IS NULL THEN 'end'
        WHEN stop < start THEN 'order'
        WHEN category = 'usage' AND stop > start + INTERVAL 366 DAYS THEN 'long'
        WHEN billed IS NULL THEN 'billed'
        WHEN effective IS NULL THEN 'effective'
        WHEN NOT coalesce(regexp_full_match(currency, '[A-Z]{{3}}'), false) THEN 'currency'
        WHEN NOT coalesce(category IN ('usage', 'purchase', 'tax', 'credit', 'adjustment'), false) THEN 'category'
        END AS why
    FROM typed"""
_NAMED = rf"""
    SELECT checked.*,
        CASE WHEN category IN ('usage', 'purchase') AND lower(charge_class) = 'correction' THEN 'correction'
            ELSE category END AS kind,
        lower(commitment_status) AS status,
        coalesce(status = 'unused', false) OR coalesce(lower(reservation_status) = 'unused', false)
            OR coalesce(regexp_matches(lower(description), '{_UNUSED}'), false) AS unused,
        lower(concat_ws(' | ', description, meter, resource_type)) AS about,
        lower(coalesce(provider, '')) AS seller,
        lower(concat_ws(' ', service, meter)) AS sold,
        coalesce({_number("count_text")}, {_number(_COUNT)}) AS gpu_count,
        coalesce(
            nullif(regexp_extract(details, '(?i)"(?:x_)?(?:InstanceType|ServiceType)" *: *"([^"]+)"', 1), ''), instance,
            nullif(regexp_extract(about, '{MACHINE}'), '')) AS machine_text,
        {_bare("machine_text")} AS machine_name,
        CASE WHEN seller LIKE '%google%' THEN nullif(concat_ws('', regexp_extract(about, '{_GOOGLE_CARD}', 1),
            regexp_extract(about, '{_GOOGLE_CARD}', 2), regexp_extract(about, '{_GOOGLE_CARD}', 3)),
            '') END AS sku_card,
        consumed.hours IS NOT NULL AND try_cast(consumed_text AS DOUBLE) IS NOT NULL AS by_consumed,
        CASE WHEN by_consumed THEN {_number("consumed_text")} * {_block("consumed_unit")} * consumed.hours
            ELSE {_number("priced_text")} * {_block("priced_unit")} * priced.hours END AS row_hours,
        CASE WHEN by_consumed THEN consumed.each_gpu ELSE coalesce(priced.each_gpu, false) END AS each_gpu,
        consumed_unit IS NULL AND priced_unit IS NULL OR consumed.hours IS NOT NULL OR priced.hours IS NOT NULL
            OR coalesce(regexp_matches(coalesce({_unit("consumed_unit")}, {_unit("priced_unit")}), '{_SPAN}'), false)
            AS untold
    FROM checked
    LEFT JOIN units AS consumed ON consumed.unit = {_unit("consumed_unit")}
    LEFT JOIN units AS priced ON priced.unit = {_unit("priced_unit")}"""
_JUDGED = rf"""
    SELECT named.*, machines.accelerator AS known_accelerator, machines.gpus AS known_gpus,
        coalesce(publisher IS NOT NULL AND CASE
            WHEN regexp_matches(seller, 'aws|amazon') THEN NOT regexp_matches(lower(publisher), 'aws|amazon')
            WHEN seller LIKE '%microsoft%' THEN NOT lower(publisher) LIKE '%microsoft%'
            WHEN seller LIKE '%google%' THEN NOT lower(publisher) LIKE '%google%'
            ELSE false END, false)
            OR regexp_matches(sold, '{_TWICE}') OR regexp_matches(about, '{_SOFTWARE}') AS twice,
        regexp_matches(coalesce(named.machine_name, ''), '{GPU_FAMILY}') AS gpu_family,
        row_hours IS NOT NULL OR unused OR category = 'purchase' OR kind = 'correction' AS timed,
        CASE
            WHEN twice OR category NOT IN ('usage', 'purchase') THEN 'none'
            WHEN sku_card IS NOT NULL AND about NOT LIKE 'commitment%' AND row_hours IS NOT NULL THEN 'card'
            WHEN seller LIKE '%google%' AND regexp_matches(about, '{_BESIDE}')
                THEN CASE WHEN sku_card IS NOT NULL OR gpu_family OR regexp_matches(about, '{_GOOGLE_MACHINE}')
                    THEN 'beside' ELSE 'none' END
            WHEN NOT timed THEN CASE WHEN untold AND (gpu_family OR gpu_count > 0) THEN 'unknown' ELSE 'none' END
            WHEN coalesce(gpu_count, known_gpus) > 0 OR (each_gpu AND gpu_count IS NULL) THEN 'machine'
            WHEN gpu_count = 0 THEN 'none'
            WHEN gpu_family OR regexp_matches(about, '\bgpu') THEN 'unknown'
            ELSE 'none' END AS role,
        CASE WHEN role = 'card' OR (role = 'machine' AND each_gpu) THEN 1.0
            WHEN role = 'machine' THEN coalesce(gpu_count, known_gpus) END AS gpus_each,
        CASE WHEN category = 'usage' AND NOT unused THEN coalesce(row_hours * gpus_each, 0) ELSE 0 END AS gpu_h,
        CASE WHEN stop - start > INTERVAL 32 DAYS THEN start ELSE start + (stop - start) / 2 END AS middle,
        CASE WHEN regexp_matches(about, '{_OUT}') AND NOT regexp_matches(about, '{_WITHIN}') THEN 'egress'
            WHEN lower(service_category) = 'storage' THEN 'storage' END AS flow,
        kind = 'usage' AND status IS NULL AND abs(billed) >= 0.1 AND billed <> round(billed) AS is_odd
    FROM named LEFT JOIN machines ON machines.name = named.machine_name"""
_SUMMED = """
    SELECT coalesce(provider, ''), coalesce(service, ''), coalesce(service_category, ''), coalesce(region, ''),
        currency,
        CASE WHEN length(start_text) = 10 AND start_text[5] = '-' THEN start_text[1:7]
            WHEN $zone = 'UTC' THEN strftime(middle, '%Y-%m')
            ELSE strftime(timezone($zone, timezone('UTC', middle)), '%Y-%m') END AS month,
        CASE WHEN regexp_matches(invoice_text, '^[0-9]{4}-[0-9]{2}') THEN invoice_text[1:7] ELSE month END AS invoice,
        kind, unused,
        CASE lower(pricing_category) WHEN 'standard' THEN 'standard' WHEN 'committed' THEN 'committed'
            WHEN 'dynamic' THEN 'spot' ELSE 'other' END AS pricing,
        role, CASE WHEN role = 'unknown' THEN coalesce(machine_name, lower(description)[1:60]) END AS machine, flow,
        commitment, coalesce(commitment_category, ''), coalesce(commitment_type, ''),
        CASE WHEN status IN ('used', 'unused') THEN status END, why,
        CASE WHEN gpu_h <> 0 AND role = 'machine' THEN known_accelerator END AS accelerator,
        CASE WHEN gpu_h <> 0 AND role = 'card' THEN sku_card END AS card,
        CASE WHEN gpu_h <> 0 THEN start END AS begin, CASE WHEN gpu_h <> 0 THEN stop END AS finish,
        min(start), max(stop), count(*), fsum(effective), fsum(billed),
        fsum(try_cast(listed_text AS DOUBLE)), fsum(try_cast(contracted_text AS DOUBLE)), fsum(gpu_h),
        coalesce(fsum(row_hours)
            FILTER (role IN ('machine', 'card', 'unknown') AND NOT unused AND category = 'usage'), 0),
        count(*) FILTER (is_odd), count(*) FILTER (is_odd AND effective = round(effective)),
        count(*) FILTER (regexp_matches(start_text, ':.*[+-]') AND NOT regexp_matches(start_text, '[+-]00(:?00)?$'))
    FROM judged GROUP BY ALL"""
_STEPS = {"typed": _TYPED, "checked": _CHECKED, "named": _NAMED, "judged": _JUDGED}


def _steps(raw: str, last: str) -> str:
    names = [*_STEPS][: [*_STEPS].index(last) + 1]
    return "WITH raw AS (" + raw + ")" + "".join(f", {name} AS ({_STEPS[name]})" for name in names)


def summing(raw: str) -> str:
    """Adds the sums of the rows that `raw` selects to the table of facts. Parameters: $zone, $days and those of raw.

    Rows that cannot be read are summed too, by why: their other columns hold nothing that is used.
    """
    return f"INSERT INTO facts {_steps(raw, 'judged')} {_SUMMED}"


def refused(raw: str) -> str:
    """The first rows that cannot be read: number (from 1), why, and the texts of what may be at fault.

    Parameters: $days, $only (one reason alone, or NULL) and those of raw.
    """
    return (
        f"{_steps(raw, 'checked')} SELECT number, why, start_text, end_text, billed_text, effective_text, "
        "currency_text, charge FROM checked WHERE why IS NOT NULL AND coalesce(why = $only, true) LIMIT 10"
    )


def picked(found: Mapping[str, Sequence[str]]) -> str:
    """The columns of COLUMNS, each from the expressions found for it, or NULL; texts that are searched are joined."""
    ways = {name: "concat_ws(' | ', {})" if name in _JOINED else "coalesce({})" for name in COLUMNS}
    given = {name: ", ".join([*found[name], "NULL::VARCHAR"]) for name in COLUMNS}
    return ", ".join(f"nullif({ways[name].format(given[name])}, '') AS {name}" for name in COLUMNS)


FACTS = """
    SELECT provider, service, service_category, region, currency, month, invoice, kind, unused, pricing, role, machine,
        flow, commitment, commitment_category, commitment_type, status, min(first), max(last), sum(number_of)::BIGINT,
        fsum(effective), fsum(billed), fsum(listed), fsum(contracted), fsum(gpu_h), fsum(hours), sum(odd)::BIGINT,
        sum(whole)::BIGINT
    FROM facts WHERE why IS NULL GROUP BY ALL ORDER BY ALL"""
SPANS = """
    SELECT accelerator, card, epoch_us(begin) / 3.6e9 AS start_h, epoch_us(finish) / 3.6e9 AS end_h,
        fsum(gpu_h) AS gpu_h
    FROM facts WHERE why IS NULL AND begin IS NOT NULL GROUP BY ALL ORDER BY ALL"""
PAID = """
    SELECT accelerator, card, currency, fsum(effective) FROM facts
    WHERE why IS NULL AND begin IS NOT NULL AND kind = 'usage' GROUP BY ALL ORDER BY ALL"""
UNREAD = """
    SELECT currency, fsum(billed) FROM facts
    WHERE why IS NOT NULL AND billed IS NOT NULL AND currency IS NOT NULL GROUP BY currency ORDER BY currency"""
BROKEN = "SELECT line, arg_min(error_message, column_idx) FROM broken GROUP BY line ORDER BY line"
ELSEWHERE = "SELECT coalesce(sum(elsewhere), 0)::BIGINT FROM facts WHERE why IS NULL"
