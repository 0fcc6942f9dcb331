"""The closed lists in words: markets, exclusion rules, methods. What a list lacks is shown as it is spelled."""

from __future__ import annotations

import re
from functools import cache

from gpuwise.locale import N_, _, number

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
    "unreliable": N_("the marketplace calls its host unreliable (--min-reliability)"),
    "outlier_price": N_("a quote far below all others of its marketplace"),
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
    "cpu_architecture": N_("another CPU architecture than the job was built for"),
    "no_prediction": N_("no basis for a prediction"),
    "not_stated": N_("not the GPUs whose time you stated (--takes)"),
    "session_too_short": N_("a session ends before preparing is done"),
    "host_ends": N_("its host ends it before the job is done"),
    "endless": N_("losses make the job practically endless"),
    "deadline": N_("takes longer than --deadline"),
    "budget": N_("costs more than --budget"),
}

SAMPLES = {"image": N_("image"), "sequence": N_("sequence")}
"""What a workload trains on; a person's own may be called as they like."""

MEMORY_VERDICTS = {
    "fits": N_("fits"),
    "doubtful": N_("doubtful"),
    "does_not_fit": N_("does not fit"),
}

MEMORY_PHASES = {
    "forward": N_("at the end of the forward pass, with the loss"),
    "backward": N_("as the backward pass makes its first gradients"),
    "optimizer": N_("as the optimizer takes its step"),
}

MEMORY_PARTS = {
    "weights": N_("weights"),
    "gradients": N_("gradients"),
    "gradient buckets": N_("gradients to send"),
    "optimizer states": N_("optimizer states"),
    "activations": N_("activations"),
    "workspace": N_("workspace"),
    "context": N_("context"),
}

MEMORY_BASES = {
    "measured": N_("from your own run"),
    "published": N_("from measured rows of this very job, under the software of their day"),
    "predicted": N_("from counts: nobody measured it"),
}

METHODS = {
    "measured": N_("measured"),
    "ratio": N_("moved from measured rows"),
    "roofline": N_("by counted work"),
    "stated": N_("as you said"),
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
    "preparation_ready_s": N_("time to prepare"),
    "preparation_bare_s": N_("time to prepare"),
    "image_gb_per_s": N_("rate of fetching an image"),
    "region_gb_per_s": N_("rate of data in the region"),
    "internet_gb_per_s": N_("rate of data from elsewhere"),
    "spot_available_fraction": N_("how long one waits for spot machines"),
    "shared_host_cpu_fraction": N_("what others take of the host"),
    "vcpu_cpus": N_("what a vCPU is worth"),
    "image_load_s": N_("time to load an image"),
    "store": N_("rate of the store"),
    "software and memory format": N_("software and memory format"),
    "whether the host or the device limits": N_("whether the host or the device limits"),
    "CPU time to load a sample": N_("CPU time to load a sample"),
    "the time as you stated it": N_("the time as you stated it"),
    "epochs to target": N_("epochs to target"),
    "growth of epochs with the batch": N_("growth of epochs with the batch"),
}
"""Assumptions and other errors as parts of an error budget."""

ERRORS_OF = (
    N_("own ways of {name}"), N_("networks like {name}"), N_("what {name} reaches"), N_("data sheet of {name}"),
    N_("matrix rate of {name}"), N_("hosts differ, {name}"), N_("host {name}"), N_("variant unknown {name}"),
    N_("price age {name}"), N_("waiting for {name}"), N_("losses of {name}"), N_("scaling {name}"),
)  # fmt: skip
"""Errors that belong to something, by whose name they are told apart."""

LINES = {
    "preparation": N_("preparation"),
    "compute": N_("compute"),
    "image": N_("image"),
    "data transfer": N_("data transfer"),
    "moving the disk": N_("moving the disk"),
    "evaluation": N_("evaluation"),
    "checkpoints": N_("checkpoints"),
    "interruption": N_("interruption"),
    "billing step": N_("rest of the billing step"),
    "commitment": N_("commitment"),
    "licence": N_("licence"),
    "fee": N_("fee"),
    "committed hours": N_("committed hours"),
    "above the monthly cap": N_("above the monthly cap"),
    "covered by a commitment": N_("covered by a commitment"),
    "disk": N_("disk"),
    "public address": N_("public address"),
    "preparation without GPU": N_("preparation without GPU"),
    "standing stopped": N_("standing stopped"),
    "disk while stopped": N_("disk while stopped"),
    "disk while prepared": N_("disk while it is prepared"),
    "taking results out": N_("taking results out"),
    "share of the machine": N_("share of the machine"),
    "waiting": N_("waiting"),
    "data from its provider": N_("data from its provider"),
    "egress": N_("egress"),
    "VAT": N_("VAT"),
}
"""Lines of a bill."""

UNITS = {
    "h": N_("h"), "month": N_("month"), "start": N_("start"), "GB": N_("GB"), "GB-month": N_("GB a month"),
    "of the net bill": N_("of the net bill"),
}  # fmt: skip
"""What a line of a bill is counted in."""


PLATFORM = {
    "frameworks": N_("Frameworks"),
    "container_runtime": N_("Container runtime"),
    "ssh": N_("SSH"),
    "storage": N_("Storage"),
    "disk_moves": N_("A prepared disk can be moved"),
    "session_limit_h": N_("Longest free session, h"),
    "session_limit_paid_h": N_("Longest paid session, h"),
    "names": N_("Do names say which GPU?"),
    "host": N_("Host"),
    "stopped": N_("Stopped, it is billed"),
    "resume": N_("Started again, it"),
    "billing_step_s": N_("Billing step, s"),
    "billing_minimum_s": N_("Billed at least, s"),
    "billing_clock": N_("Billing step, how it is counted"),
    "monthly_cap_h": N_("Hours of a month billed at most"),
    "disk_survives": N_("Does the disk outlive the machine?"),
    "stopped_disk_usd_per_gb_month": N_("Disk of a stopped machine, USD a GB and month"),
}
PLATFORM_VALUES = {
    "preinstalled": N_("preinstalled"),
    "optional": N_("if one chooses an image with it"),
    "none": N_("none"),
    "yes": N_("yes"),
    "no": N_("no"),
    "hidden": N_("no, they hide it"),
    "average": N_("partly"),
    "clear": N_("yes"),
    "nothing": N_("nothing"),
    "disk": N_("the disk"),
    "everything": N_("in full"),
    "calendar": N_("by the hours of the clock"),
}
"""What is known of a provider's platform; other values are free text or numbers."""

STAGES = {
    "wait": N_("wait for data"),
    "read": N_("read"),
    "decode": N_("decode"),
    "augment": N_("augment"),
    "copy": N_("copy to device"),
    "forward": N_("forward"),
    "backward": N_("backward"),
    "all_reduce": N_("all-reduce"),
    "optimizer": N_("optimizer"),
    "rest": N_("the rest"),
}
"""Parts of a training step, in the order in which they happen."""

VERDICTS = {
    "input-bound": N_("input-bound"),
    "host-bound": N_("host-bound"),
    "copy-bound": N_("copy-bound"),
    "compute-bound": N_("compute-bound"),
    "memory-bound": N_("memory-bound"),
    "communication-bound": N_("communication-bound"),
    "storage-bound": N_("storage-bound"),
    "throttled": N_("throttled"),
    "unknown": N_("unknown"),
}
"""What holds a run back."""

ENDINGS = {
    "steps": N_("all steps done"),
    "minutes": N_("time over"),
    "epochs": N_("all epochs done"),
    "target": N_("target reached"),
    "patience": N_("accuracy stopped growing"),
    "precise": N_("precise enough"),
    "program ended": N_("program ended"),
    "interrupted": N_("interrupted"),
    "killed": N_("killed by the system or by somebody"),
    "stalled": N_("no step for too long"),
    "out of memory": N_("out of memory"),
    "loss not finite": N_("the loss was no longer a number"),
    "disk full": N_("the disk was full"),
    "data": N_("the data could not be used"),
    "failed": N_("failed"),
}
"""Why a run ended."""

THROTTLES = {
    "heat": N_("too hot"),
    "power": N_("power limit"),
    "power brake": N_("the power supply asked for it"),
    "hardware": N_("by the hardware, cause not told"),
    "sync": N_("held to the clock of others"),
    "clocks set": N_("clocks set by a person"),
}
"""Why a device slows down."""


CAUSES = {
    "loader": N_("data loader"),
    "workers": N_("loader workers"),
    "decode": N_("decoding"),
    "bursts": N_("bursts of the loader"),
    "pinned": N_("pinned to few CPUs"),
    "few CPUs": N_("few CPUs allowed"),
    "quota": N_("CPU quota"),
    "neighbour": N_("other processes"),
    "shared memory": N_("shared memory"),
    "disk": N_("disk"),
    "network storage": N_("network storage"),
    "optimizer": N_("optimizer"),
    "launches": N_("launching kernels"),
    "sync": N_("waits that the program asks for"),
    "copies": N_("copies to the device"),
    "collective": N_("waiting for other devices"),
    "straggler": N_("one slow process"),
    "heat": N_("heat"),
    "power": N_("power limit"),
    "spill": N_("memory spills to the host"),
    "recompiles": N_("compiling again"),
    "cpu instead of gpu": N_("the CPU is used, and a GPU is there"),
    "fallback": N_("operations fall back to the CPU"),
    "bf16": N_("emulated bf16"),
    "precision": N_("a faster precision is unused"),
    "out of memory": N_("out of memory"),
    "stalled": N_("stalled"),
    "not finite": N_("loss not finite"),
    "data": N_("data"),
    "ended": N_("how it ended"),
    "threads": N_("idle cores"),
    "device": N_("the device itself"),
}
"""What holds a run back, nearer than its kind."""

ENERGY = {
    "counter": N_("by the hardware's counter"),
    "polled": N_("from polled power"),
    "modelled": N_("modelled, not measured"),
    "unknown": N_("unknown"),
}
"""Where a figure of energy comes from."""

GAUGES = {
    "busy_fraction": N_("busy"),
    "sm_fraction": N_("share of the chip at work"),
    "bandwidth_fraction": N_("memory at work"),
    "power_w": N_("power"),
    "clock_mhz": N_("clock"),
    "temperature_c": N_("temperature"),
    "used_gib": N_("memory in use"),
    "allocated_gib": N_("memory of the job"),
    "others_gib": N_("memory of others"),
    "energy_j": N_("energy"),
    "interval_s": N_("time between samples"),
    "throttled": N_("slowed down"),
}
"""What a device shows."""

READINESS = {
    "ready": N_("Ready"),
    "ready for CPU only": N_("Ready for the CPU only"),
    "not ready": N_("Not ready"),
}
STATES = {
    "ok": N_("ok"),
    "absent": N_("absent, not needed"),
    "missing": N_("missing"),
    "broken": N_("does not work"),
    "unknown": N_("unknown"),
}
"""What `check` finds of a thing."""

PROBES = {
    "jpeg decode": N_("JPEG decoding"),
    "disk in order": N_("disk, read in order"),
    "disk at random": N_("disk, 64 KiB at random"),
    "disk at random, 16 readers": N_("disk, 64 KiB at random, 16 readers"),
    "all-reduce 1 MiB": N_("all-reduce of 1 MiB, bus bandwidth"),
    "all-reduce 85 MB": N_("all-reduce of 85 MB, bus bandwidth"),
    "memory copy": N_("memory copy"),
    "host to device, pinned": N_("host to device, pinned memory"),
    "host to device, pageable": N_("host to device, pageable memory"),
}


def platform_fact(name: str) -> str:
    return _(PLATFORM.get(name, name.replace("_", " ")))


def platform_value(name: str, value: str) -> str:
    return (
        number(f"{float(value):g}")
        if name.endswith(("_s", "_h", "_usd_per_gb_month"))
        else _(PLATFORM_VALUES.get(value, value))
    )


def cause(name: str) -> str:
    return _(CAUSES.get(name, name))


def energy(source: str) -> str:
    return _(ENERGY.get(source, source))


def gauge(name: str) -> str:
    return _(GAUGES.get(name, name.replace("_", " ")))


def readiness(name: str) -> str:
    return _(READINESS.get(name, name))


def state(name: str) -> str:
    return _(STATES.get(name, name))


def probe(name: str) -> str:
    return _(PROBES.get(name, name))


def verdict(name: str) -> str:
    return _(VERDICTS.get(name, name))


def stage(name: str) -> str:
    return _(STAGES.get(name, name.replace("_", " ")))


def ending(name: str) -> str:
    return _(ENDINGS.get(name, name))


def throttle(name: str) -> str:
    return _(THROTTLES.get(name, name))


def field(name: str) -> str:
    return _(FIELDS.get(name, name.replace("_", " ")))


def error(name: str) -> str:
    if name not in ERRORS and (found := _owned_error(name)):
        return _(found[0]).format(name=found[1])
    return _(ERRORS.get(name, name))


@cache
def _owned_error(name: str) -> tuple[str, str] | None:
    """The text of an error that belongs to something, and that thing."""
    for text in ERRORS_OF:
        head, _place, tail = text.partition("{name}")
        if found := re.fullmatch(re.escape(head) + "(.+)" + re.escape(tail), name):
            return text, found[1]
    return None


def line(kind: str) -> str:
    return _(LINES.get(kind, kind))


def unit(name: str) -> str:
    return _(UNITS.get(name, name))


def market(name: str) -> str:
    return _(MARKETS.get(name, name))


def rule(name: str) -> str:
    return _(RULES.get(name, name.replace("_", " ")))


def sample(name: str) -> str:
    return _(SAMPLES.get(name, name))


def memory_verdict(name: str) -> str:
    return _(MEMORY_VERDICTS.get(name, name))


def memory_phase(name: str) -> str:
    return _(MEMORY_PHASES.get(name, name))


def memory_part(name: str) -> str:
    return _(MEMORY_PARTS.get(name, name))


def memory_basis(name: str) -> str:
    return _(MEMORY_BASES.get(name, name))


def method(name: str) -> str:
    return _(METHODS.get(name, name))
