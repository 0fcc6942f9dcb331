"""Instance types of the clouds → the accelerators that they hold, from the offers at hand: what a bill does not say."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuwise.catalogue import Catalogue
from gpuwise.model import Accelerator
from gpuwise.names import Ambiguous, Index, Match, resolve

CLOUDS = ("aws", "azure", "gcp")
GOOGLE = "gcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What an instance type holds. accelerator: id."""

    accelerator: str
    gpus: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """machines: instance type, as `bare` spells it -> what it holds. cards: id -> what Google offers by itself."""

    machines: Mapping[str, Machine] = field(default_factory=dict)
    cards: Mapping[str, Accelerator] = field(default_factory=dict)
    index: Index = field(default_factory=lambda: Index(()))

    def card(self, text: str) -> str | None:
        """The accelerator that Google's SKU names: of several sizes the least, since it names the larger ones."""
        words = text.split()
        for end in range(len(words), 0, -1):
            found = resolve(self.index, " ".join(words[:end]))
            meant = found.candidates if isinstance(found, Ambiguous) else ()
            meant = (found.accelerator,) if isinstance(found, Match) else meant
            offered = [card for card in meant if card.id in self.cards]
            if offered:
                return min(offered, key=lambda card: card.memory_gib).id
        return None


def bare(instance: str) -> str:
    """How the table spells an instance type: Standard_NC24ads_A100_v4 and "NC24ads A100 v4" are nc24ads_a100_v4."""
    return re.sub(r"^(?:standard_|ml\.)", "", instance.strip().lower().replace(" ", "_"))


def instances(offers: Catalogue, accelerators: Iterable[Accelerator]) -> Instances:
    """Of the three clouds' offers; an instance type that is offered with several kinds or numbers tells nothing."""
    found: dict[str, set[tuple[str, float]]] = defaultdict(set)
    cards: set[str] = set()
    for row in range(len(offers)):
        cloud, name, card = offers.provider[row], offers.instance[row], offers.accelerator[row]
        if cloud in CLOUDS and card is not None:
            found[bare(name or "")].add((card, float(offers.accelerators[row] * offers.nodes[row])))
        if cloud == GOOGLE and card is not None:
            cards.add(card)
    known = {each.id: each for each in accelerators}
    return Instances(
        machines={
            name: Machine(accelerator=card, gpus=gpus)
            for name, holds in found.items()
            if name and len(holds) == 1
            for card, gpus in holds
        },
        cards={card: known[card] for card in cards if card in known},
        index=Index(known.values()),
    )
