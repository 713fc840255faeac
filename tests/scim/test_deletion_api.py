"""What the deletion of a user changes elsewhere."""

from scim.directories import Directory, last_modified


async def test_a_group_that_lost_a_deleted_user_has_another_version(managed: Directory) -> None:
    ada, bob = await managed.add("ada"), await managed.add("bob")
    group = await managed.add_group("engineers", [ada, bob])
    other = await managed.add_group("others", [bob])
    path = f"/Groups/{group['id']}"

    await managed.ask("DELETE", f"/Users/{ada['id']}")

    known = {"if-none-match": group["meta"]["version"]}
    asked = await managed.ask("GET", path, headers=known)
    assert asked.status_code == 200
    assert [member["value"] for member in asked.json()["members"]] == [bob["id"]]
    assert asked.json()["meta"]["version"] == 'W/"2"'
    assert last_modified(asked.json()) >= last_modified(group)
    same = (await managed.ask("GET", f"/Groups/{other['id']}")).json()
    assert same["meta"]["version"] == other["meta"]["version"]


async def test_a_change_of_the_group_that_was_known_before_is_refused(managed: Directory) -> None:
    ada = await managed.add("ada")
    group = await managed.add_group("engineers", [ada])
    await managed.ask("DELETE", f"/Users/{ada['id']}")

    body = {"schemas": group["schemas"], "displayName": "engineers"}
    known = {"if-match": group["meta"]["version"]}
    stale = await managed.ask("PUT", f"/Groups/{group['id']}", json=body, headers=known)

    assert stale.status_code == 412
