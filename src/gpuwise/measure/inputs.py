"""Made-up inputs for a model that is only counted: on the meta device, or as real tensors with boxes where it asks for
them. Needs torch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from gpuwise.errors import Message
from gpuwise.measure import meta

BOXES = 7
"""In a made-up image: the mean of COCO's train2017 (860,001 boxes in 118,287 images, 7.3)."""
KEYPOINTS = 17
"""Of a person, in COCO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A square image of `input_size` px a side, or `tokens` token ids."""

    input_size: int
    tokens: int | None

    def batch(self, samples: int, device: str) -> torch.Tensor:
        if self.tokens:
            return meta.tokens(samples, self.tokens, device)
        return meta.image(samples, self.input_size, device)

    def real(self, model: torch.nn.Module, samples: int = 1) -> tuple[Any, tuple[str, ...]]:
        """Samples of noise for `model`, and what is taken for granted by that."""
        torch.manual_seed(0)
        batch = self.batch(samples, "cpu")
        if (resized := _resized(model)) is None:
            return batch, ("depends on the data: counted on noise, at the start of training",)
        caution = (
            f"depends on the data: counted at the start of training on a square image of noise with {BOXES} boxes, "
            f"which the model itself resizes to {resized} px"
        )
        return (list(batch), [_target(self.input_size) for _ in range(samples)]), (caution,)

    @property
    def shape(self) -> Message:
        if self.tokens:
            return Message("{n} token ids", n=self.tokens)
        return Message("an image of {n} × {n} px", n=self.input_size)


def _resized(model: torch.nn.Module) -> int | None:
    """The size to which a detection model of torchvision brings its images; None for another model."""
    known = sys.modules.get("torchvision.models.detection.transform")
    transform = getattr(model, "transform", None)
    if known is None or not isinstance(transform, known.GeneralizedRCNNTransform):
        return None
    fixed, least = getattr(transform, "fixed_size", None), transform.min_size
    return int(fixed[0] if fixed else least[-1])


def _target(size: int) -> dict[str, torch.Tensor]:
    """Boxes of a sixteenth to a half of the image's side, with masks and keypoints for the models that want them."""
    corner = torch.rand(BOXES, 2) * size / 2
    sides = size / 16 + torch.rand(BOXES, 2) * size * 7 / 16
    return {
        "boxes": torch.cat((corner, corner + sides), 1),
        "labels": torch.ones(BOXES, dtype=torch.long),
        "masks": torch.zeros((BOXES, size, size), dtype=torch.uint8),
        "keypoints": torch.zeros((BOXES, KEYPOINTS, 3)),
    }
