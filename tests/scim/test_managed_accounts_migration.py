"""Accounts that were disabled before the hub recorded who disabled them."""

from hublet.core.database import open_database
from hublet.core.database.migrations import known_migrations, migrate
from hublet.scim.users import store
from processes import Place
from scratch_database import hub_of

NUMBER = 17
BEFORE = """
INSERT INTO organizations (id, name, fullname, plan, created_at) VALUES ('o', 'o', 'o', 'free', 1);
INSERT INTO users (id, name, fullname, type, is_admin, created_at, disabled_at) VALUES
    ('left', 'l', 'l', 'user', FALSE, 1, 7),
    ('inactive', 'i', 'i', 'user', FALSE, 1, 7),
    ('banned', 'b', 'b', 'user', FALSE, 1, 7),
    ('active', 'a', 'a', 'user', FALSE, 1, NULL);
INSERT INTO scim_accounts (user_id, organization_id) VALUES
    ('left', 'o'), ('inactive', 'o'), ('banned', 'o'), ('active', 'o');
INSERT INTO scim_users (id, organization_id, managed, user_id, user_name, user_name_key, active,
                        kept, created_at, updated_at, version) VALUES
    ('i', 'o', TRUE, 'inactive', 'i', 'i', FALSE, '{}', 1, 1, 1),
    ('b', 'o', TRUE, 'banned', 'b', 'b', TRUE, '{}', 1, 1, 1),
    ('a', 'o', TRUE, 'active', 'a', 'a', TRUE, '{}', 1, 1, 1);
"""


async def test_who_is_off_without_being_active_was_switched_off_by_the_provider(
    place: Place,
) -> None:
    place.data_dir.mkdir()
    known = known_migrations()
    async with open_database(hub_of(place.settings)) as database:
        await migrate(database, [each for each in known if each.number < NUMBER])
        async with database.transaction() as conn:
            await conn.apply(BEFORE)
        await migrate(database, known)

        async with database.read() as reading:
            names = ("left", "inactive", "banned", "active")
            found = {name: await store.is_disabled_by_provider(reading, name) for name in names}
    assert found == {"left": True, "inactive": True, "banned": False, "active": False}
