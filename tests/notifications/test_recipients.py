"""Who hears of what happens in a discussion, and who does not."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from community.discussions import a_discussion
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from notifications.recipients import Stage, a_stage
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, disable
from service_accounts import create as create_service_account

Step = Callable[[Stage], Awaitable[Any]]

WATCHED, PARTICIPATING, MENTIONED = "watched", "participating", "mentioned"


@pytest.fixture
async def stage(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Stage:
    """A discussion that bob opened in ada's repository."""
    repo_id = await a_repo(client, ada, "ada/engine")
    address = await a_discussion(client, await sign_in(database, "bob"))
    return await a_stage(client, database, address, repo_id=repo_id)


async def watch_repo(stage: Stage) -> None:
    await stage.watch("sam", "repo", stage.repo_id)


async def watch_owner(stage: Stage) -> None:
    await stage.watch("sam", "user", await stage.user_id("ada"))


async def watch_somebody_else(stage: Stage) -> None:
    await stage.watch("sam", "user", await stage.user_id("bob"))


async def comment(stage: Stage) -> None:
    await stage.comment("sam")


async def be_mentioned(stage: Stage) -> None:
    await stage.user_id("sam")
    await stage.comment("bob", "Look, @sam.")


async def mute_repo(stage: Stage) -> None:
    await stage.mute("sam", "repo")


async def mute_thread(stage: Stage) -> None:
    await stage.mute("sam", "thread")


async def be_disabled(stage: Stage) -> None:
    await disable(stage.database, "sam")


def without(*keys: str) -> Step:
    async def switch_off(stage: Stage) -> None:
        await stage.switch_off("sam", *keys)

    return switch_off


def case(sentence: str, *steps: Step, inbox: str | None = None, mail: str | None = None) -> Any:
    return pytest.param(steps, inbox, mail, id=sentence)


BY_WATCHING, BY_TAKING_PART = "discussions_watched", "discussions_participating"


@pytest.mark.parametrize(
    ("steps", "inbox", "mail"),
    [
        case("a stranger does not"),
        case("who watches it does", watch_repo, inbox=WATCHED, mail=BY_WATCHING),
        case("who watches its owner does", watch_owner, inbox=WATCHED, mail=BY_WATCHING),
        case(
            "who watches both does, once", watch_repo, watch_owner, inbox=WATCHED, mail=BY_WATCHING
        ),
        case("who watches whoever opened it does not", watch_somebody_else),
        case("who commented does", comment, inbox=PARTICIPATING, mail=BY_TAKING_PART),
        case("who was mentioned does", be_mentioned, inbox=MENTIONED, mail=BY_TAKING_PART),
        case(
            "the nearest part counts", watch_repo, comment, inbox=PARTICIPATING, mail=BY_TAKING_PART
        ),
        case("a mention sticks", be_mentioned, comment, inbox=MENTIONED, mail=BY_TAKING_PART),
        case("who muted the repository does not", watch_repo, mute_repo),
        case("nor by its owner", watch_owner, mute_repo),
        case(
            "but takes part",
            watch_repo,
            comment,
            mute_repo,
            inbox=PARTICIPATING,
            mail=BY_TAKING_PART,
        ),
        case("or is mentioned", be_mentioned, mute_repo, inbox=MENTIONED, mail=BY_TAKING_PART),
        case("who muted the thread does not", watch_repo, mute_thread),
        case("nor by taking part", comment, mute_thread),
        case("nor by being mentioned", be_mentioned, mute_thread),
        case("who is disabled does not", watch_repo, be_mentioned, be_disabled),
        case("not in the inbox", watch_repo, without("web_discussions_watched"), mail=BY_WATCHING),
        case("not by mail", watch_repo, without("discussions_watched"), inbox=WATCHED),
        case(
            "not at all",
            watch_repo,
            without("web_discussions_watched", "discussions_watched"),
        ),
        case(
            "the switches for taking part do not matter to who watches",
            watch_repo,
            without("web_discussions_participating", "discussions_participating"),
            inbox=WATCHED,
            mail=BY_WATCHING,
        ),
        case(
            "who takes part, not in the inbox",
            comment,
            without("web_discussions_participating"),
            mail=BY_TAKING_PART,
        ),
        case("who takes part, not by mail", comment, without(BY_TAKING_PART), inbox=PARTICIPATING),
        case(
            "the switches for watching do not matter to who takes part",
            watch_repo,
            comment,
            without("web_discussions_watched", "discussions_watched"),
            inbox=PARTICIPATING,
            mail=BY_TAKING_PART,
        ),
        case(
            "the switches of posts do not matter",
            be_mentioned,
            without("web_posts_participating", "posts_participating", "arxiv_paper_activity"),
            inbox=MENTIONED,
            mail=BY_TAKING_PART,
        ),
    ],
)
async def test_who_is_notified_of_a_comment(
    stage: Stage, steps: tuple[Step, ...], inbox: str | None, mail: str | None
) -> None:
    for step in steps:
        await step(stage)
    await stage.settle()

    await stage.comment("carol", "So do I.")

    assert (await stage.notified()).get("sam") == inbox
    assert (await stage.mailed()).get("sam") == mail


async def test_the_owner_and_who_opened_it_are_notified_and_the_actor_is_not(
    stage: Stage,
) -> None:
    comment_id = await stage.comment("carol")

    assert await stage.notified() == {"ada": WATCHED, "bob": PARTICIPATING}
    assert await stage.mailed() == {"ada": BY_WATCHING, "bob": BY_TAKING_PART}
    assert [await stage.leads_to(name) for name in ("ada", "bob")] == [comment_id] * 2


async def test_an_owner_who_muted_the_repository_receives_nothing_of_it(stage: Stage) -> None:
    await stage.mute("ada", "repo")

    await stage.comment("carol")

    assert await stage.notified() == {"bob": PARTICIPATING}


@pytest.mark.parametrize("name", ["ada", "bob"])
async def test_nobody_is_notified_of_what_they_did_themselves(stage: Stage, name: str) -> None:
    await stage.watch(name, "repo", stage.repo_id)

    await stage.comment(name, f"It is me, @{name}.")

    assert await stage.notified() == {
        other: part for other, part in (("ada", WATCHED), ("bob", PARTICIPATING)) if other != name
    }


async def test_who_answers_an_item_takes_part_from_then_on(stage: Stage) -> None:
    await stage.comment("carol")
    await stage.notified()

    await stage.comment("ada")

    assert await stage.notified() == {
        "ada": PARTICIPATING,
        "bob": PARTICIPATING,
        "carol": PARTICIPATING,
    }


async def test_who_closes_a_thread_takes_part_from_then_on(stage: Stage) -> None:
    await stage.comment("carol")
    await stage.notified()

    await stage.post("ada", "/status", status="closed")

    assert (await stage.notified())["ada"] == PARTICIPATING


async def test_a_program_receives_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: Stage
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )
    bot = await create_service_account(client, ada)
    name = bot["name"]

    await stage.comment("carol", f"@{name}, run it.")

    assert await stage.notified() == {"ada": WATCHED, "bob": PARTICIPATING}
    assert set(await stage.mailed()) == {"ada", "bob"}


async def test_a_new_discussion_notifies_with_its_first_message(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await a_user(database, "sam")

    address = await a_discussion(client, await sign_in(database, "bob"), description="Hi, @sam!")

    stage = Stage(
        client=client,
        database=database,
        address=address,
        thread_id=(await client.get(address)).json()["id"],
        repo_id=repo_id,
    )
    assert await stage.notified() == {"ada": WATCHED, "sam": MENTIONED}
    [first] = (await client.get(address)).json()["events"]
    assert await stage.leads_to("sam") == first["id"]


async def test_an_item_is_of_the_type_and_place_of_its_repository(stage: Stage) -> None:
    await stage.comment("carol")
    await stage.notified()

    async with stage.database.read() as conn:
        rows = await conn.fetch_all("SELECT DISTINCT type, place_id FROM notifications")
    assert [tuple(row) for row in rows] == [("model", stage.repo_id)]
