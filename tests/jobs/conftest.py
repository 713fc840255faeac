"""What tests of those who look after jobs share."""

import pytest

from hublet.core.database import Database
from jobs.overseen import set_jobs
from jobs.scripted_runner import ScriptedRunner


@pytest.fixture
def runner() -> ScriptedRunner:
    return ScriptedRunner()


@pytest.fixture
def database_with_room(database: Database) -> Database:
    set_jobs(database, cores=1000, memory_bytes=2**50)
    return database
