"""What tests of those who look after jobs share."""

import pytest

from hublet.core.database import Database
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import set_jobs


@pytest.fixture
def runner() -> ScriptedRunner:
    return ScriptedRunner()


@pytest.fixture
def database_with_room(database: Database) -> Database:
    set_jobs(database, cores=1000, memory_bytes=2**50)
    return database
