"""Labels from a table: a column of file names and one of labels, with the images beside it.

Read so far: Painter by Numbers (`all_data_info.csv`, `train_info.csv`: new_filename or filename, artist, style, genre,
in_train) and WikiArt (`artist_train.csv` with its `artist_val.csv` and `artist_class.txt`: no header, file and number).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gpuwise.errors import DataError, Message
from gpuwise.measure.data import (
    BAD_FRACTION,
    BAD_LEAST,
    TRAINING,
    VALIDATION,
    Dataset,
    images,
    is_image,
    labelled,
    some,
    unreadable,
)
from gpuwise.store.delimited import SEPARATORS, Table, to_utf8
from gpuwise.store.delimited import read as read_table

FILES = (
    "new_filename", "filename", "file_name", "file", "image", "image_path", "img", "img_path", "path", "filepath",
    "image_name", "image_id", "name", "id",
)  # fmt: skip
LABELS = (
    "artist", "artist_name", "painter", "author", "creator", "label", "class", "class_name", "category", "target",
    "style", "genre",
)  # fmt: skip
PARTS = ("in_train", "split", "subset", "set", "partition", "phase")
_FIRST = ("all_data_info", "artist", "painter", "train_info", "train", "label", "")
"""Which table is meant where several lie in one folder."""
_NO_LABEL = ("nan", "null")
_SAMPLE_ROWS = 200


class Row(NamedTuple):
    """file: as written, None if missing; trained: False for a row that is held out."""

    file: str | None
    label: str | None
    trained: bool


@dataclass(slots=True)
class _Counts:
    skipped: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)


def choose(folder: Path) -> Path | None:
    """The table in `folder`, or in a folder in it, that looks most like labels; None if there is none."""
    found = [t for pattern in ("*.csv", "*.tsv", "*/*.csv") for t in sorted(folder.glob(pattern))]
    usable = [table for table in found if not _is_held_out(table) and _names_files(table)]
    return min(usable, key=lambda t: next(i for i, word in enumerate(_FIRST) if word in t.stem.lower()), default=None)


def _is_held_out(table: Path) -> bool:
    return re.split(r"[_\-. ]", table.stem.lower())[-1] in VALIDATION


def _names_files(path: Path) -> bool:
    try:
        table = _table(path)
    except DataError:
        return False
    return _file_column(table) is not None


def read(path: Path, label: str | None = None) -> Dataset:
    """The data set that the table describes; `label` names its column of labels.

    Raises DataError for no column of files or labels, no labels at all, and more missing files than the limit."""
    table = _table(path)
    column, note = _label_column(table, label, path)
    rows = list(_rows(table, column, path))
    if twin := _twin(path):
        rows += [row._replace(trained=False) for row in _rows(_table(twin), column, twin)]
    rows = _named(rows, path)
    files, counts = _located(rows, path)
    train = [(file, text) for file, (text, trained) in files.items() if trained]
    held = [(file, text) for file, (text, trained) in files.items() if not trained]
    if not train:
        raise _no_labels(path, column)
    described = Message("images listed in a table, classes from its column {column}", column=column)
    found = labelled(train, held, path, layout="table", described=described)
    notes = (*note, *_notes(counts, column), *table.notes, *found.notes)
    return replace(found, skipped={**found.skipped, **counts.skipped}, notes=notes)


def _notes(counts: _Counts, column: str) -> Iterator[Message]:
    if count := counts.skipped["no label"]:
        yield Message("{count} rows have no {column} and were left out", count=count, column=column)
    if count := counts.skipped["file missing"]:
        names = some(counts.missing)
        yield Message("{count} files of the table are missing and were left out: {names}", count=count, names=names)
    if count := counts.skipped["listed twice"]:
        yield Message("{count} rows name a file that was listed before; the first label counts", count=count)


# ---- columns ----


def _table(path: Path) -> Table:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    body, _ = to_utf8(content, path.name)
    first = body.split(b"\n", 1)[0].decode(errors="replace")
    separator = max(SEPARATORS, key=first.count)
    fields = [text.strip().strip('"') for text in first.split(separator)]
    if any(is_image(text) for text in fields):
        body = separator.join(_made_header(fields)).encode() + b"\n" + body
    return read_table(body, path.name, {*FILES, *LABELS})


def _made_header(fields: Sequence[str]) -> Iterator[str]:
    """Names for the columns of a table without a header: file, label, and numbers for the rest."""
    others = (name for name in ("label", *(f"column {i}" for i in range(len(fields)))))
    taken = False
    for text in fields:
        if is_image(text) and not taken:
            taken = True
            yield "file"
        else:
            yield next(others)


def _file_column(table: Table) -> str | None:
    """The column whose values end like images; else one with a usual name."""

    def share(column: str) -> float:
        values = table.columns[column].values[:_SAMPLE_ROWS]
        return sum(map(is_image, values)) / len(values) if values else 0.0

    usual = sorted(table.columns, key=lambda c: FILES.index(c.lower()) if c.lower() in FILES else len(FILES))
    best = max(usual, key=share, default=None)
    if best is not None and share(best) >= 0.5:
        return best
    return next((c for c in usual if c.lower() in FILES), None)


def _label_column(table: Table, asked: str | None, path: Path) -> tuple[str, tuple[Message, ...]]:
    """The column of labels, and a note where others could have been meant."""
    file = _file_column(table)
    others = [c for c in table.columns if c != file and c.lower() not in PARTS]
    if file is None:
        raise _no_column(path, Message("no column of image files"), table)
    if asked is not None:
        if asked not in others:
            raise _no_column(path, Message("no column {column}", column=asked), table)
        return asked, ()
    usual = sorted((c for c in others if c.lower() in LABELS), key=lambda c: LABELS.index(c.lower()))
    if not usual and len(others) != 1:
        raise _no_column(path, Message("no column of labels that can be told by its name"), table)
    taken, rest = (usual or others)[0], usual[1:]
    note = Message("classes are from the column {column}; it also has {others}", column=taken, others=some(rest))
    return taken, (note,) if rest else ()


def _no_column(path: Path, what: Message, table: Table) -> DataError:
    return DataError(
        Message(
            "{file} has {what}; its columns are {columns}.", file=path, what=what, columns=", ".join(table.columns)
        ),
        Message("Name the columns filename and artist, or say which column holds the labels."),
        file=str(path),
        row=1,
    )


def _no_labels(path: Path, column: str) -> DataError:
    return DataError(
        Message("No row of {file} names an image and its label in the column {column}.", file=path, column=column),
        Message("Fill the column, or name another one."),
        file=str(path),
        column=column,
    )


# ---- rows ----


def _rows(table: Table, label: str, path: Path) -> Iterator[Row]:
    file = _file_column(table)
    if file is None or label not in table.columns:
        raise _no_column(path, Message("no column {column}", column=label), table)
    part = next((c for c in table.columns if c.lower() in PARTS), None)
    parts = _cells(table, part) if part else ["train"] * len(table)
    for name, text, which in zip(_cells(table, file), _cells(table, label), parts, strict=True):
        yield Row(name, None if text is None or text.lower() in _NO_LABEL else text, _trained(which))


def _cells(table: Table, column: str) -> list[str | None]:
    coded = table.columns[column]
    values = (*coded.values, None)
    return [values[code] for code in coded.codes.tolist()]


def _trained(part: str | None) -> bool:
    text = (part or "").lower()
    return text in TRAINING or text not in (*VALIDATION, "false", "0", "no", "f", "n")


def _twin(path: Path) -> Path | None:
    """The table of held-out images beside `path`: artist_val.csv of artist_train.csv."""
    for word in VALIDATION:
        twin = path.with_name(re.sub("train(ing)?", word, path.name))
        if twin != path and twin.is_file():
            return twin
    return None


def _named(rows: list[Row], path: Path) -> list[Row]:
    """Numbers replaced by names, where a file such as artist_class.txt beside the table gives them."""
    names = _class_names(path.with_name(re.sub("_?train(ing)?", "", path.stem) + "_class.txt"))
    if not names or any(row.label not in names for row in rows if row.label):
        return rows
    return [row._replace(label=names[row.label]) if row.label else row for row in rows]


def _class_names(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {number: name.strip() for number, _, name in (line.strip().partition(" ") for line in lines) if name}


# ---- files ----


def _located(rows: list[Row], path: Path) -> tuple[dict[str, tuple[str, bool]], _Counts]:
    """File -> (label, trained) of the usable rows, and what was left out."""
    index = _Index(path.parent)
    files, counts = dict[str, tuple[str, bool]](), _Counts()
    for trained in (True, False):
        side = [row for row in rows if row.trained == trained]
        before, missing = len(files), len(counts.missing)
        for row in side:
            _locate(row, index, files, counts)
        gone = len(counts.missing) - missing
        if gone > max(BAD_LEAST, BAD_FRACTION * len(side)) and (trained or len(files) > before):
            raise _missing(path, counts.missing[missing:], len(side), index.count)
    return files, counts


def _locate(row: Row, index: _Index, files: dict[str, tuple[str, bool]], counts: _Counts) -> None:
    if row.file is None or row.label is None:
        counts.skipped["no label" if row.file else "no file name"] += 1
        return
    file = index.find(row.file)
    if file is None:
        counts.skipped["file missing"] += 1
        counts.missing.append(row.file)
    elif file in files:
        counts.skipped["listed twice"] += 1
    else:
        files[file] = (row.label, row.trained)


def _missing(path: Path, names: Sequence[str], rows: int, found: int) -> DataError:
    if not found:
        what = Message("There are no images beside {file}.", file=path)
    else:
        what = Message("{count} of the {rows} files named in {file} are missing: {names}.",
                       count=len(names), rows=rows, file=path, names=some(names))  # fmt: skip
    return DataError(what, Message("Put the images into a folder beside the table."), file=str(path))


class _Index:
    """The images beside a table, or beside its folder where there are none, by their last path parts."""

    def __init__(self, folder: Path) -> None:
        found = images(folder) or images(folder.parent)
        self.count = len(found)
        self._by_name: dict[str, list[str]] = {}
        for file in found:
            name = os.path.basename(file)
            for key in (name, os.path.splitext(name)[0]):
                self._by_name.setdefault(key, []).append(file)

    def find(self, name: str) -> str | None:
        """The image that the table means by `name`; None if none or several fit."""
        parts = name.replace("\\", "/").strip("/")
        fitting = self._by_name.get(parts.rpartition("/")[2], [])
        if len(fitting) > 1:
            fitting = [file for file in fitting if _ends(file, parts)]
        return fitting[0] if len(fitting) == 1 else None


def _ends(file: str, parts: str) -> bool:
    plain = file.replace(os.sep, "/")
    return plain.endswith("/" + parts) or os.path.splitext(plain)[0].endswith("/" + parts)
