"""Which accelerator is meant by what people, price lists and drivers write.

A text is cut into words, and each word says one thing: a size of memory, a form (SXM4, PCIe, NVL, Server), an
architecture, a brand, or nothing (Tesla, Generation). What is left, in any order, must be a known product exactly:
nothing is matched by likeness, so a laptop card or a card that the table lacks is never taken for its neighbour. What
is stated then narrows the variants of the product; what is not stated leaves them open.

    resolve(index, "NVIDIA H100 80GB HBM3")     Match        the SXM board
    resolve(index, "H100")                      Ambiguous    PCIe, SXM or NVL: a range over the three
    resolve(index, "GRID A100D-40C")            Slice        40 GB of an A100 80 GB
    resolve(index, "RTX 3080 Laptop GPU")       Unknown      with the raw text and the nearest names
"""

from gpuwise.names.index import Index
from gpuwise.names.meaning import Ambiguous, Match, Name, Slice, Unknown, memory_per_gpu, resolve
from gpuwise.names.wanted import Selection, resolve_request

__all__ = [
    "Ambiguous",
    "Index",
    "Match",
    "Name",
    "Selection",
    "Slice",
    "Unknown",
    "memory_per_gpu",
    "resolve",
    "resolve_request",
]
