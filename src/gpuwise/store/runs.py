"""Past runs: what was asked, on which data, and the whole answer as one JSON document.

A SQLite file in the user's data folder, or any database that `GPUWISE_STORE` names (a path, or a URL such as
`postgresql://host/team`). A run keeps the offers with price and date as they were: nothing is looked up again later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    create_engine,
    event,
    select,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from gpuwise.errors import DataError, InvalidInput, Message, UnknownName

WAIT_S = 30
"""How long a writer waits for another one, and for a database server to answer."""
_LOCK = 7_305_121_853
"""Number of PostgreSQL's advisory lock that lets one process at a time migrate."""

_META = MetaData()
_RUNS = Table(
    "runs",
    _META,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("schema", Integer, nullable=False),
    Column("created_utc", Text, nullable=False),
    Column("data_version", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("payload_json", Text, nullable=False),
)
_VERSION = Table("schema_version", MetaData(), Column("version", Integer, nullable=False))


def _create_runs(connection: Connection) -> None:
    _META.create_all(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create_runs,)
"""Migration i takes a store from version i to i + 1. Append only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One answer that was kept. kind: the verb; schema: of the payload; created_utc: ISO 8601; id: None until stored.

    payload: the verb's JSON document, offers with the prices and dates of that day included; never NaN.
    """

    kind: str
    schema: int
    created_utc: str
    data_version: str
    workload: str
    payload: Mapping[str, Any]
    id: int | None = None


class Store:
    """A place for runs. Connections live for one call, so a store needs no closing and is safe across processes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with self._transaction() as connection:
            _migrate(connection)

    @property
    def place(self) -> str:
        """Where the runs are, as a person would write it; a password is not shown."""
        url = self._engine.url
        return url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)

    def put(self, run: Run) -> int:
        """Keep a run and return its id. ValueError if the payload holds NaN or infinity."""
        payload = json.dumps(run.payload, allow_nan=False, ensure_ascii=False)
        row = {c: getattr(run, c) for c in ("kind", "schema", "created_utc", "data_version", "workload")}
        with self._transaction() as connection:
            key = connection.execute(_RUNS.insert().values(**row, payload_json=payload)).inserted_primary_key
        assert key is not None
        return int(key[0])

    def replace(self, id: int, run: Run) -> None:  # noqa: A002 - the column's name
        """Put a newer state of a run in the place of the one with this id. ValueError as for `put`."""
        payload = json.dumps(run.payload, allow_nan=False, ensure_ascii=False)
        with self._transaction() as connection:
            connection.execute(_RUNS.update().where(_RUNS.c.id == id).values(payload_json=payload))

    def get(self, id: int) -> Run:  # noqa: A002 - the column's name
        """The run with this id; UnknownName if there is none."""
        with self._transaction() as connection:
            row = connection.execute(select(_RUNS).where(_RUNS.c.id == id)).mappings().one_or_none()
        if row is None:
            raise UnknownName(
                Message("There is no run {id} in {place}.", id=id, place=self.place),
                Message("List the runs that were kept: gpuwise runs list"),
            )
        return _run(row)

    def list(self, *, kind: str | None = None, workload: str | None = None) -> tuple[Run, ...]:
        """The runs of this kind and workload (None: any), newest first."""
        query = select(_RUNS).order_by(_RUNS.c.id.desc())
        if kind is not None:
            query = query.where(_RUNS.c.kind == kind)
        if workload is not None:
            query = query.where(_RUNS.c.workload == workload)
        with self._transaction() as connection:
            return tuple(_run(row) for row in connection.execute(query).mappings())

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise _failure(self.place, error) from error


def open_store(place: str | None = None) -> Store:
    """The store at `place` (a path or a URL), else at GPUWISE_STORE, else in the user's data folder; made if missing.

    Raises InvalidInput if it cannot be reached or written, DataError if the file is no store or a newer gpuwise's.
    """
    url = _url(place or os.environ.get("GPUWISE_STORE") or str(user_data_path("gpuwise") / "runs.sqlite3"))
    try:
        if url.get_backend_name() == "sqlite":
            return Store(_sqlite(url))
        return Store(create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": WAIT_S}))
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise InvalidInput(
            Message("No driver for {backend} is installed ({cause}).", backend=url.drivername, cause=str(error)),
            Message("For PostgreSQL: pip install 'psycopg[binary]'."),
        ) from error


def _url(place: str) -> URL:
    if "://" not in place:
        return _file(Path(place).expanduser())
    try:
        return make_url(place)
    except ArgumentError as error:
        raise InvalidInput(
            Message("The address of the run store cannot be read."),
            Message("Write a path, or postgresql://user@host/database."),
        ) from error


def _file(path: Path) -> URL:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _failure(str(path), error) from error
    return URL.create("sqlite", database=str(path))


def _sqlite(url: URL) -> Engine:
    """Writers queue up: each transaction takes the write lock at its start and waits for it."""
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_S, "isolation_level": None})

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _migrate(connection: Connection) -> None:
    """Bring the store to the newest version, one process at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    _VERSION.create(connection, checkfirst=True)
    version, newest = connection.scalar(select(_VERSION.c.version)) or 0, len(MIGRATIONS)
    if version > newest:
        raise DataError(
            Message("The run store has version {version}; this gpuwise knows {known}.", version=version, known=newest),
            Message("Update gpuwise, or name another store in GPUWISE_STORE."),
        )
    for migration in MIGRATIONS[version:]:
        migration(connection)
    if version < newest:
        connection.execute(_VERSION.delete())
        connection.execute(_VERSION.insert().values(version=newest))


def _run(row: RowMapping) -> Run:
    columns = {name: row[name] for name in ("id", "kind", "schema", "created_utc", "data_version", "workload")}
    return Run(**columns, payload=json.loads(row["payload_json"]))


def _failure(place: str, error: Exception) -> InvalidInput:
    """One clear sentence for whatever the driver said; its first line is the cause."""
    cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    if "not a database" in cause or "malformed" in cause:
        return DataError(
            Message("{place} is no run store, or it is damaged ({cause}).", place=place, cause=cause),
            Message("Move the file away, or name another store in GPUWISE_STORE."),
            file=place,
        )
    return InvalidInput(
        Message("The run store {place} cannot be used ({cause}).", place=place, cause=cause),
        Message("Check that it exists and can be written, or name another one in GPUWISE_STORE."),
    )
