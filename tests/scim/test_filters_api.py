"""Lists: what a filter lets through, in which order, and in which pages."""

import urllib.parse
from typing import Any

import pytest

from scim.directories import LIST, Directory, error_body

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {
        "externalId": "X1",
        "name": {"givenName": "Ada", "familyName": "Lovelace"},
        "emails": [
            {"value": "ada@corp.test", "type": "work", "primary": True},
            {"value": "zoo@home.test", "type": "home"},
        ],
    },
    "Bob": {"externalId": "x2", "emails": [{"value": "Bob@Corp.test", "type": "work"}]},
    "carl": {"active": False, "name": {"givenName": "Carl"}},
    "Übel": {"emails": [{"value": "aaa@home.test", "type": "home", "primary": False}]},
}
EVERYBODY = "ada Bob carl Übel"
SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"


async def _fill(directory: Directory) -> None:
    for name, attributes in PEOPLE.items():
        await directory.add(name, **attributes)


FILTERS = [
    ('userName eq "ADA"', "ada"),
    ('USERNAME EQ "ada"', "ada"),
    ('userName eq "übel"', "Übel"),
    ('userName ne "ada"', "Bob carl Übel"),
    ('userName co "A"', "ada carl"),
    ('userName sw "ü"', "Übel"),
    ('userName ew "L"', "carl Übel"),
    ('userName ew "much longer than any name"', ""),
    ('userName co ""', EVERYBODY),
    ('userName gt "bob"', "carl Übel"),
    ('userName ge "bob"', "Bob carl Übel"),
    ('userName lt "bob"', "ada"),
    ('userName le "bob"', "ada Bob"),
    ("userName pr", EVERYBODY),
    ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada"', "ada"),
    ('externalId eq "X1"', "ada"),
    ('externalId eq "x1"', ""),
    ('externalId ne "X1"', "Bob carl Übel"),
    ('externalId co "x"', "Bob"),
    ("externalId pr", "ada Bob"),
    ("not (externalId pr)", "carl Übel"),
    ('not (externalId eq "X1")', "Bob carl Übel"),
    ("externalId eq null", "carl Übel"),
    ("externalId ne null", "ada Bob"),
    ("active eq true", "ada Bob Übel"),
    ("active eq false", "carl"),
    ("active ne true", "carl"),
    ('name.givenName eq "ada"', "ada"),
    ('not (name.givenName sw "a")', "Bob carl Übel"),
    ("name pr", "ada carl"),
    ('emails.value eq "BOB@corp.test"', "Bob"),
    ('emails eq "zoo@home.test"', "ada"),
    ('emails co "corp.test"', "ada Bob"),
    ('emails.value ne "ada@corp.test"', "Bob carl Übel"),
    ("emails pr", "ada Bob Übel"),
    ("not (emails pr)", "carl"),
    ('emails[type eq "home"]', "ada Übel"),
    ('emails[type eq "home" and value sw "z"]', "ada"),
    ('emails[type eq "work" and value sw "z"]', ""),
    ("emails[primary eq true]", "ada"),
    ("emails[not (primary eq true)]", "ada Bob Übel"),
    ('meta.lastModified gt "2020-01-01T00:00:00Z"', EVERYBODY),
    ('meta.created lt "2020-01-01T00:00:00Z"', ""),
    ('active eq true and (userName eq "ada" or userName eq "carl")', "ada"),
    ('userName eq "carl" or active eq true and userName sw "b"', "Bob carl"),
    ('userName eq "\'; DROP TABLE users; --"', ""),
    ('userName co "%"', ""),
    ('userName sw "_da"', ""),
]


async def test_a_filter_lets_through_what_it_says(invited: Directory) -> None:
    await _fill(invited)

    wrong = {}
    for scim_filter, names in FILTERS:
        found = await invited.user_names(filter=scim_filter)
        if found != names.split():
            wrong[scim_filter] = found
    assert wrong == {}


async def test_a_user_is_found_by_what_was_shown(invited: Directory) -> None:
    await _fill(invited)
    [ada] = (await invited.ask("GET", "/Users", params={"filter": 'userName eq "ada"'})).json()[
        "Resources"
    ]

    for scim_filter in (
        f'id eq "{ada["id"]}"',
        f'meta.created eq "{ada["meta"]["created"]}"',
        f'meta.lastModified ge "{ada["meta"]["lastModified"]}" and userName eq "ada"',
    ):
        assert await invited.user_names(filter=scim_filter) == ["ada"]


@pytest.mark.parametrize(
    "scim_filter",
    [
        "",
        "userName",
        "userName eq",
        'userName is "ada"',
        "userName eq 7",
        "externalId eq 7",
        "active gt true",
        'active co "t"',
        'shoeSize eq "7"',
        'nickName eq "ada"',
        'name eq "ada"',
        'meta.version eq "1"',
        'meta.created gt "yesterday"',
        "userName gt null",
        'emails[shoe eq "x"]',
        'userName eq "ada" and',
        "(" * 21 + "userName pr" + ")" * 21,
        'userName eq "' + "x" * 4000 + '"',
        r'userName eq "\u0000"',
        r'externalId eq "a\u0000b"',
        r'emails.value co "\u0000"',
        r'userName eq "\ud800"',
        r'externalId sw "\udfff"',
        r'emails[value eq "\ud800"]',
    ],
)
async def test_a_filter_that_cannot_be_answered_is_refused(
    invited: Directory, scim_filter: str
) -> None:
    response = await invited.ask("GET", f"/Users?filter={urllib.parse.quote(scim_filter)}")

    assert response.status_code == 400, response.text
    assert response.json()["scimType"] == "invalidFilter"


@pytest.mark.parametrize("name", ["filter", "Filter", "FILTER"])
async def test_a_long_filter_is_refused_however_it_is_named(invited: Directory, name: str) -> None:
    long = " or ".join(['userName eq "ada"'] * 3000)

    response = await invited.ask("POST", "/Users/.search", json={"schemas": [SEARCH], name: long})

    assert response.status_code == 400
    assert response.json() == error_body(
        400, "filter must have at most 4000 characters and 20 parentheses.", "invalidFilter"
    )


@pytest.mark.parametrize(
    ("order", "names"),
    [
        pytest.param({"sortBy": "userName"}, "ada Bob carl Übel", id="by name"),
        pytest.param(
            {"sortBy": "username", "sortOrder": "descending"}, "Übel carl Bob ada", id="backwards"
        ),
        pytest.param({"sortBy": "externalId"}, "ada Bob carl Übel", id="without one comes last"),
        pytest.param(
            {"sortBy": "externalId", "sortOrder": "descending"},
            "Übel carl Bob ada",
            id="without one comes first",
        ),
        pytest.param({"sortBy": "emails.value"}, "Übel ada Bob carl", id="by the primary address"),
        pytest.param({"sortBy": "emails"}, "Übel ada Bob carl", id="by addresses"),
        pytest.param({"sortBy": "active"}, "carl ada Bob Übel", id="by whether active"),
        pytest.param({"sortBy": "meta.created"}, "ada Bob carl Übel", id="by age"),
        pytest.param({"sortBy": "name.givenName"}, "ada carl Bob Übel", id="by first name"),
    ],
)
async def test_a_list_is_sorted(invited: Directory, order: dict[str, str], names: str) -> None:
    await _fill(invited)

    assert await invited.user_names(**order) == names.split()


async def test_an_unknown_order_is_refused(invited: Directory) -> None:
    unknown = await invited.ask("GET", "/Users", params={"sortBy": "shoeSize"})
    unfit = await invited.ask("GET", "/Users", params={"sortBy": "meta.version"})

    assert unknown.status_code == 400
    assert unfit.json() == error_body(
        400, "sortBy: meta.version cannot be sorted by.", "invalidValue"
    )


@pytest.mark.parametrize(
    ("query", "start", "names"),
    [
        pytest.param({}, 1, EVERYBODY, id="all of them"),
        pytest.param({"count": 2}, 1, "ada Bob", id="the first two"),
        pytest.param({"startIndex": 3, "count": 2}, 3, "carl Übel", id="the next two"),
        pytest.param({"startIndex": 4, "count": 2}, 4, "Übel", id="the last one"),
        pytest.param({"startIndex": 5}, 5, "", id="past the end"),
        pytest.param({"startIndex": 10**30}, 10**30, "", id="far past the end"),
        pytest.param({"startIndex": 0}, 1, EVERYBODY, id="zero is one"),
        pytest.param({"startIndex": -7, "count": 1}, 1, "ada", id="less is one"),
        pytest.param({"count": 0}, 1, "", id="only how many"),
        pytest.param({"count": -7}, 1, "", id="less than none is none"),
        pytest.param({"count": 10**30}, 1, EVERYBODY, id="more than there may be"),
    ],
)
async def test_a_list_is_read_in_pages(
    invited: Directory, query: dict[str, int], start: int, names: str
) -> None:
    await _fill(invited)

    page = (await invited.ask("GET", "/Users", params=query)).json()

    assert {**page, "Resources": [user["userName"] for user in page["Resources"]]} == {
        "schemas": [LIST],
        "totalResults": 4,
        "startIndex": start,
        "itemsPerPage": len(names.split()),
        "Resources": names.split(),
    }


@pytest.mark.parametrize("query", [{"count": "x"}, {"startIndex": "1.5"}, {"sortOrder": "up"}])
async def test_a_parameter_of_another_type_is_refused(
    invited: Directory, query: dict[str, str]
) -> None:
    response = await invited.ask("GET", "/Users", params=query)

    assert (response.status_code, response.json()["status"]) == (400, "400")


async def test_groups_are_found_by_their_members(invited: Directory) -> None:
    ada, bob = await invited.add("ada"), await invited.add("bob")
    await invited.add_group("Engines", [ada, bob])
    await invited.add_group("Mills", [bob])
    await invited.add_group("Empty")

    async def names(scim_filter: str) -> list[str]:
        response = await invited.ask("GET", "/Groups", params={"filter": scim_filter})
        return [group["displayName"] for group in response.json()["Resources"]]

    assert await names(f'members eq "{ada["id"]}"') == ["Engines"]
    assert await names(f'members.value eq "{bob["id"]}"') == ["Engines", "Mills"]
    assert await names(f'members[value eq "{ada["id"]}"]') == ["Engines"]
    assert await names("not (members pr)") == ["Empty"]
    assert await names('displayName sw "e"') == ["Engines", "Empty"]
    assert await names(f'displayName eq "mills" and members ne "{ada["id"]}"') == ["Mills"]


async def test_users_and_groups_are_searched_together(invited: Directory) -> None:
    for name in ("ada", "bob"):
        await invited.add(name)
    for name in ("Engines", "Mills"):
        await invited.add_group(name)

    async def search(**more: Any) -> tuple[int, list[str]]:
        body = {"schemas": [SEARCH]} | more
        found = (await invited.ask("POST", "/.search", json=body)).json()
        shown = [each.get("userName") or each["displayName"] for each in found["Resources"]]
        return found["totalResults"], shown

    assert await search() == (4, ["ada", "bob", "Engines", "Mills"])
    assert await search(startIndex=2, count=2) == (4, ["bob", "Engines"])
    assert await search(startIndex=4) == (4, ["Mills"])
    assert await search(filter='userName eq "ada" or displayName eq "mills"') == (
        2,
        ["ada", "Mills"],
    )
    sorted_together = await invited.ask(
        "POST", "/.search", json={"schemas": [SEARCH], "sortBy": "id"}
    )
    assert sorted_together.status_code == 501
