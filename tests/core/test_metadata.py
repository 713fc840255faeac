"""Single values about the database are found, set and replaced."""

from hublet.core import metadata
from hublet.core.database import Database


async def test_a_value_is_found_once_it_was_set_and_replaced_when_it_is_set_again(
    database: Database,
) -> None:
    async with database.transaction() as conn:
        assert await metadata.find(conn, "colour") is None
        await metadata.set_value(conn, "colour", "red")
        await metadata.set_value(conn, "colour", "blue")
        await metadata.set_value(conn, "size", "")

    async with database.read() as reader:
        assert await metadata.find(reader, "colour") == "blue"
        assert await metadata.find(reader, "size") == ""
