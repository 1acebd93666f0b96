"""A ledger's address, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.provisioning.ledgers import until_free
from tests.support.provisioning.postgres import postgres_cluster


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[str]:
    with postgres_cluster() as url:
        yield url


@pytest.fixture
def cluster(running_cluster: str) -> str:
    """Return the address of a database that other tests have, too, once their stations are gone."""
    until_free(running_cluster)
    return running_cluster


@pytest.fixture
def database(request: pytest.FixtureRequest, running_cluster: str) -> str:
    """Return the address of a new PostgreSQL database."""
    name = f"ledger_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"
    import psycopg

    with psycopg.connect(running_cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return running_cluster.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "state" / "ledger.sqlite")
    url: str = request.getfixturevalue("database")
    return url
