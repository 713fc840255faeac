"""Single values about the database are found, set and replaced."""

from hublet.core import facts
from hublet.core.database import Database


async def test_a_fact_is_found_once_it_was_set_and_replaced_when_it_is_set_again(
    database: Database,
) -> None:
    async with database.transaction() as conn:
        assert await facts.find(conn, "colour") is None
        await facts.set_value(conn, "colour", "red")
        await facts.set_value(conn, "colour", "blue")
        await facts.set_value(conn, "size", "")

    async with database.read() as reader:
        assert await facts.find(reader, "colour") == "blue"
        assert await facts.find(reader, "size") == ""
