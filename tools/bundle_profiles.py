"""profiles.csv: time of a training step and its shares by class of operation, on four GPUs (PROFET's anchor data).

The source's "host" share is of threads that run beside the device, about three times the step, whatever the card does:
it is no sign of a slow host and is taken out. The rest is one step of the device, and sums to 1.
"""

from __future__ import annotations

from pathlib import Path

from bundle_tables import Row, number, read

CLASSES = {
    "convolution": "frac_conv", "matrix": "frac_matmul", "norm": "frac_bn", "elementwise": "frac_elem",
    "optimizer": "frac_opt", "idle": "frac_idle",
}  # fmt: skip
COLUMNS = (
    "workload", "family", "accelerator", "image_size", "batch_per_accelerator", "step_s", *CLASSES, "precision",
    "software", "source", "note",
)  # fmt: skip
KEY = ("workload", "accelerator", "image_size", "batch_per_accelerator")
ACCELERATORS = {"K80": "k80-half", "M60": "m60-half", "T4": "t4", "V100": "v100-sxm2-16gb"}
"""A K80 or M60 of a cloud is one of the two GPUs of a board; p3.2xlarge has the V100 SXM2 with 16 GB."""
FAMILIES = {
    "VGG11": "vgg", "VGG13": "vgg", "VGG19": "vgg", "ResNet18": "resnet", "ResNet34": "resnet", "ResNet50": "resnet",
    "ResNetSmall": "resnet", "LeNet5": "small_cnn", "MNIST_CNN": "small_cnn", "CIFAR10_CNN": "small_cnn",
    "AlexNet": "alexnet", "InceptionResNetV2": "inception",
}  # fmt: skip
DIGITS = 6


def build(source: Path) -> list[Row]:
    """The rows of profiles.csv."""
    return [_row(old) for old in read(source / "benchmarks" / "profet_training_latency.csv")]


def _row(old: Row) -> Row:
    device = sum(float(old[column]) for column in CLASSES.values())
    shares = {name: number(float(old[column]) / device, DIGITS) for name, column in CLASSES.items()}
    return {
        "workload": old["model"],
        "family": FAMILIES[old["model"]],
        "accelerator": ACCELERATORS[old["gpu"]],
        "image_size": old["image_size"],
        "batch_per_accelerator": old["batch_size"],
        "step_s": old["batch_latency_s"],
        **shares,
        "precision": "fp32",
        "software": "tensorflow-2.5",
        "source": "profet",
        "note": "",
    }
