"""The closed lists in words: markets, exclusion rules, methods. What a list lacks is shown as it is spelled."""

from __future__ import annotations

from gpuwise.locale import N_, _

MARKETS = {
    "on-demand": N_("on-demand"),
    "spot": N_("spot"),
    "reserved": N_("reserved"),
    "dedicated": N_("dedicated"),
    "community": N_("community"),
    "free": N_("free tier"),
    "owned": N_("owned"),
}
"""In the order in which legends list them."""

RULES = {
    "offers": N_("all offers"),
    "after_as_of": N_("price seen after the day asked for"),
    "stale_price": N_("price too old (--max-age)"),
    "superseded": N_("a newer price of the same offer is listed"),
    "minimum_bid": N_("the figure is a minimum bid, not a price"),
    "incomplete_price": N_("the price leaves the host out"),
    "suspect_price": N_("the price is marked as suspect"),
    "unknown_price": N_("no price known"),
    "implausible_price": N_("price under a twentieth of what is usual"),
    "unknown_accelerator": N_("the GPU or the number of GPUs is not known"),
    "withdrawn": N_("withdrawn by the provider"),
    "not_startable": N_("not known to be available now (--startable)"),
    "gpu_name": N_("another GPU (--gpu)"),
    "gpu_memory": N_("other memory per GPU (--gpu)"),
    "gpu_count": N_("another number of GPUs (--gpu)"),
    "provider": N_("another provider (--provider)"),
    "region": N_("another region (--region)"),
    "market": N_("another market (--market)"),
    "host": N_("machine of a private host (--host)"),
    "data_must_stay": N_("the data may not go there (--data-must-stay)"),
    "max_price": N_("dearer than --max-price"),
    "quota": N_("over your quota (--quota)"),
    "does_not_fit": N_("the job does not fit in GPU memory"),
    "no_prediction": N_("no basis for a prediction"),
    "deadline": N_("takes longer than --deadline"),
    "budget": N_("costs more than --budget"),
}

METHODS = {
    "measured": N_("measured"),
    "ratio": N_("ratio of measured rows"),
    "roofline": N_("roofline of the datasheet"),
}


FIELDS = {
    "samples": N_("samples"),
    "epochs": N_("epochs"),
    "batch_per_accelerator": N_("batch per GPU"),
    "precision": N_("precision"),
    "memory_format": N_("memory format"),
    "state_bytes_per_parameter": N_("bytes a parameter"),
    "accuracy_fraction": N_("accuracy"),
}
"""What of a workload can be an assumption."""

ERRORS = {
    "preparation_s": N_("time to prepare"),
    "spot_losses_per_hour": N_("how often spot machines are lost"),
    "checkpoint_interval_s": N_("time between checkpoints"),
    "checkpoint_s": N_("time of a checkpoint"),
    "restart_s": N_("time to restart"),
    "billing_step_s": N_("billing step"),
}
"""Assumptions as parts of an error budget."""

LINES = {
    "preparation": N_("preparation"),
    "compute": N_("compute"),
    "interruption": N_("interruption"),
    "billing step": N_("rest of the billing step"),
    "commitment": N_("commitment"),
    "licence": N_("licence"),
    "storage": N_("storage"),
    "egress": N_("egress"),
}
"""Lines of a bill."""

UNITS = {"h": N_("h"), "month": N_("month")}
"""What a line of a bill is counted in."""


def field(name: str) -> str:
    return _(FIELDS.get(name, name.replace("_", " ")))


def error(name: str) -> str:
    return _(ERRORS.get(name, name))


def line(kind: str) -> str:
    return _(LINES.get(kind, kind))


def unit(name: str) -> str:
    return _(UNITS.get(name, name))


def market(name: str) -> str:
    return _(MARKETS.get(name, name))


def rule(name: str) -> str:
    return _(RULES.get(name, name.replace("_", " ")))


def method(name: str) -> str:
    return _(METHODS.get(name, name))
