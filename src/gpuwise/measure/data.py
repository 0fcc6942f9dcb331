"""Where the samples of reference training come from: a folder a class, a table of labels, or paintings made here.

Layouts: ImageFolder (a folder a class, alone or under train/ and val/), and the tables of public painting sets (see
`listed`). What is not held out by the layout is split here, the same for one seed. Files are not opened: damaged ones
show when they are decoded (`Tally`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from gpuwise.errors import DataError, Message

IMAGES = frozenset((".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif"))
TRAINING = ("train", "training")
VALIDATION = ("val", "valid", "validation", "dev", "test", "testing")
HELD_OUT_FRACTION = 0.2
BAD_FRACTION, BAD_LEAST = 0.05, 10
"""Files that cannot be used: up to this share, and always up to so many, they are left out and counted."""

Tell = Callable[[Message], None]
"""Is given each line of progress."""


class Sample(NamedTuple):
    path: str
    label: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Images with labels 0 … len(classes) - 1. described: in words, without a path. skipped: reason -> samples left
    out. notes: what a person should know of how it was read."""

    classes: tuple[str, ...]
    train: tuple[Sample, ...]
    validation: tuple[Sample, ...]
    layout: Literal["folders", "table", "made"]
    described: Message
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    cached: bool = False


class Originals(NamedTuple):
    """Mean size of a file, and mean width × height."""

    size_bytes: float
    area_px: float


def silent(_: Message) -> None:
    """Tells nobody."""


def find(
    path: Path | None,
    *,
    seed: int = 0,
    held_out_fraction: float = HELD_OUT_FRACTION,
    label: str | None = None,
    painters: int = 8,
    tell: Tell = silent,
) -> Dataset:
    """The samples under `path` (a folder, or a table of labels); without one, paintings of so many painters are made.

    label: the column that names the class, where a table has several. Raises DataError for a folder that cannot be
    read, no images, no labels, fewer than two classes, and too many files that are missing.
    """
    if path is None:
        from gpuwise.measure.paintings import make

        return make(painters=painters, seed=seed, tell=tell)
    found = _read(path, label)
    return found if found.validation else split(found, seed, held_out_fraction)


def _read(path: Path, label: str | None) -> Dataset:
    from gpuwise.measure import listed

    if path.is_file():
        return listed.read(path, label)
    train, validation = parts(path)
    table, classes = listed.choose(path), {} if label else class_folders(train or path)
    if table and len(classes) < 2:
        return listed.read(table, label)
    if not classes or (len(classes) == 1 and _inner(path)):
        raise _nothing(path)
    found = _folders(path, classes, class_folders(validation) if train and validation else {})
    return replace(found, notes=(*found.notes, _unused(table))) if table else found


def _unused(table: Path) -> Message:
    return Message("classes are the folders; to train on the labels of {file}, give that file", file=table.name)


def _nothing(path: Path) -> DataError:
    hint = Message("Give a folder with one folder of images a class, or a CSV with file names and labels.")
    if inner := _inner(path):
        hint = Message("Its folder {name} holds class folders: give that one.", name=inner.name)
    elif images(path):
        what = Message("The images in {path} have no labels: no class folders and no table.", path=path)
        return DataError(what, hint, file=str(path))
    return DataError(Message("There are no images with labels in {path}.", path=path), hint, file=str(path))


def _inner(path: Path) -> Path | None:
    """The folder in `path` that has the class folders, where the path is one level too high."""
    return next((folder for folder in subfolders(path) if len(class_folders(folder)) > 1), None)


# ---- a folder a class ----


def parts(path: Path) -> tuple[Path | None, Path | None]:
    """The folders of training and validation in `path`, by their names."""
    named = {folder.name.lower(): folder for folder in subfolders(path)}
    train = next((named[n] for n in TRAINING if n in named), None)
    return train, next((named[n] for n in VALIDATION if n in named), None)


def subfolders(path: Path) -> list[Path]:
    """Raises DataError where the folder is not there or cannot be read."""
    try:
        with os.scandir(path) as entries:
            names = [e.name for e in entries if e.is_dir() and not _hidden(e.name)]
    except OSError as error:
        raise unreadable(path, error) from None
    return [path / name for name in sorted(names)]


def unreadable(path: str | Path, error: OSError) -> DataError:
    return DataError(
        Message("{path} cannot be read: {reason}.", path=path, reason=error.strerror or "no reason given"),
        Message("Check the path and the permissions."),
        file=str(path),
    )


def images(path: Path) -> list[str]:
    """Paths of all image files under the folder, sorted; hidden ones left out."""

    def fail(error: OSError) -> None:
        raise unreadable(error.filename or path, error)

    found = []
    for folder, inner, names in os.walk(path, onerror=fail, followlinks=True):
        inner[:] = [name for name in inner if not _hidden(name)]
        found += [os.path.join(folder, n) for n in names if is_image(n) and not _hidden(n)]
    return sorted(found)


def is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGES


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def class_folders(path: Path) -> dict[str, list[str]]:
    """Name -> image files of each folder in `path`; empty where none of them holds images."""
    classes = {folder.name: images(folder) for folder in subfolders(path)}
    return classes if any(classes.values()) else {}


def _folders(path: Path, train: Mapping[str, list[str]], held: Mapping[str, list[str]]) -> Dataset:
    rows = [(file, name) for name, files in train.items() for file in files]
    held_rows = [(file, name) for name, files in held.items() for file in files]
    empty = [name for name, files in train.items() if not files]
    described = Message("images in a folder a class")
    found = labelled(rows, held_rows, path, layout="folders", described=described)
    if not empty:
        return found
    note = Message("{count} classes have no images and were left out: {names}", count=len(empty), names=some(empty))
    return replace(found, skipped={**found.skipped, "empty class": len(empty)}, notes=(*found.notes, note))


def labelled(
    rows: Iterable[tuple[str, str]],
    held: Iterable[tuple[str, str]],
    where: Path,
    *,
    layout: Literal["folders", "table", "made"],
    described: Message,
) -> Dataset:
    """A data set of (file, class name); held-out samples of a class that is not trained are left out and counted."""
    train, validation = list(rows), list(held)
    names = sorted({name for _, name in train})
    if len(names) < 2:
        raise one_class(where, *names)
    label = {name: i for i, name in enumerate(names)}
    strange = Counter(name for _, name in validation if name not in label)
    note = Message(
        "{count} held-out images are of classes without training images and were left out: {names}",
        count=strange.total(),
        names=some(list(strange)),
    )
    return Dataset(
        classes=tuple(names),
        train=tuple(Sample(file, label[name]) for file, name in train),
        validation=tuple(Sample(file, label[name]) for file, name in validation if name in label),
        layout=layout,
        described=described,
        skipped={"class not trained": strange.total()} if strange else {},
        notes=(note,) if strange else (),
    )


def one_class(path: Path, *names: str) -> DataError:
    """Fewer than two classes have images."""
    which = Message(": {name}", name=names[0]) if names else Message("")
    return DataError(
        Message("{path} has {count} class with images{which}; at least two are needed.", path=path, count=len(names),
                which=which),
        Message("Put the images of each class into a folder of its own."),
        file=str(path),
    )  # fmt: skip


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names, and that there are more."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


# ---- what is held out ----


def split(dataset: Dataset, seed: int, held_out_fraction: float = HELD_OUT_FRACTION) -> Dataset:
    """Holds out the same share of every class, by chance from `seed`; a class of one image is trained only."""
    held: set[int] = set()
    labels = np.array([s.label for s in dataset.train])
    for label in range(len(dataset.classes)):
        rows = np.flatnonzero(labels == label)
        count = min(max(round(held_out_fraction * len(rows)), 1), len(rows) - 1)
        held.update(np.random.default_rng([seed, label]).permutation(rows)[:count].tolist())
    note = Message("{count} images were held out by chance (seed {seed})", count=len(held), seed=seed)
    return replace(
        dataset,
        train=tuple(s for i, s in enumerate(dataset.train) if i not in held),
        validation=tuple(s for i, s in enumerate(dataset.train) if i in held),
        notes=(*dataset.notes, note),
    )


# ---- what the files are ----


def originals(samples: Sequence[Sample], most: int = 100) -> Originals | None:
    """Mean file size and area of `most` images evenly taken from the samples; None where none can be read."""
    from PIL import Image

    sizes, areas = [], []
    for sample in samples[:: max(len(samples) // most, 1)]:
        try:
            with Image.open(sample.path) as image:
                areas.append(image.width * image.height)
            sizes.append(os.stat(sample.path).st_size)
        except (OSError, Image.DecompressionBombError):
            continue
    return Originals(float(np.mean(sizes)), float(np.mean(areas))) if sizes else None


class Tally:
    """Counts distinct damaged files among those seen.

    Raises DataError once they are more than `least` and more than `fraction` of the files seen, at most `total`."""

    def __init__(self, total: int, *, fraction: float = BAD_FRACTION, least: int = BAD_LEAST) -> None:
        self.total, self.fraction, self.least = total, fraction, least
        self.seen, self.bad = 0, dict[str, str]()

    def add(self, seen: int, bad: Mapping[str, str]) -> None:
        """seen: samples that came in good order; bad: path -> what was wrong."""
        self.seen = min(self.seen + seen, self.total)
        self.bad |= bad
        if bad and len(self.bad) > max(self.least, self.fraction * (self.seen + len(self.bad))):
            raise self.error()

    def error(self) -> DataError:
        names = some([f"{path} ({reason})" for path, reason in self.bad.items()])
        return DataError(
            Message("{bad} of {seen} images cannot be read: {names}.", bad=len(self.bad),
                    seen=self.seen + len(self.bad), names=names),
            Message("Fetch or export these files anew, or take them out."),
            file=next(iter(self.bad)),
        )  # fmt: skip


def shared_bytes(*, workers: int, prefetch: int, batch: int, image_size: int, value_bytes: int = 1) -> int:
    """Shared memory that a loader fills at most: workers × prefetch batches of 3 × image_size² values."""
    return workers * prefetch * batch * 3 * image_size**2 * value_bytes
