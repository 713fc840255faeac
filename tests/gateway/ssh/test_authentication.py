"""Who comes into a job by SSH, and that everybody else hears the same."""

import asyncio

import asyncssh
import httpx2
import pytest

from gateway.ssh.guests import SshHarness, a_key, a_running_job, register
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.database import Database
from hublet.gateway.ssh import server
from hublet.jobs.records import JOBS
from jobs.jobs_api import run, set_row
from patience import SOON_SECONDS
from people import Headers, a_user, an_organization, sign_in
from repositories import a_resource_group

REFUSED = "PermissionDenied: Permission denied for user {} on host 127.0.0.1"
ACME = "/api/jobs/acme"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("ssh-ed25519", {}, id="ed25519"),
        pytest.param("ecdsa-sha2-nistp256", {}, id="ecdsa"),
        pytest.param("ssh-rsa", {"key_size": 2048}, id="rsa"),
    ],
)
async def test_the_owner_enters_with_a_registered_key(
    harness: SshHarness,
    client: httpx2.AsyncClient,
    ada: Headers,
    kind: str,
    options: dict[str, int],
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada", a_key(kind, **options))

    assert await harness.output(job_id, key, "echo $JOB_ID") == f"{job_id}\n"


async def test_every_refusal_is_the_same(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    without_ssh = await a_running_job(harness, client, ada, ssh={"enabled": False})
    waiting = (await run(client, ada, ssh={"enabled": True}))["id"]
    key, stranger = await register(harness.database, "ada"), await register(harness.database, "eve")
    tries = [
        (job_id, a_key()),
        (job_id, stranger),
        (job_id, None),
        (without_ssh, key),
        (waiting, key),
        ("0" * 24, key),
        ("nonsense", key),
    ]

    refusals = [await harness.refusal(name, tried) for name, tried in tries]

    assert refusals == [REFUSED.format(name) for name, _ in tries]


async def test_a_password_opens_nothing(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    async with harness.database.transaction() as conn:
        user = await accounts.get_user(conn, "ada")
        await accounts.set_password(conn, user, "correct horse battery")

    refusal = await harness.refusal(job_id, None, password="correct horse battery")

    assert refusal == REFUSED.format(job_id)
    methods = await asyncssh.get_server_auth_methods(
        "127.0.0.1", harness.port, username=job_id, config=None
    )
    assert methods == ["publickey"]


async def test_a_job_that_is_over_has_no_door(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    await set_row(harness.database, job_id, stage="COMPLETED")

    assert await harness.refusal(job_id, key) == REFUSED.format(job_id)


async def test_members_with_write_enter_the_jobs_of_an_organization(
    harness: SshHarness, client: httpx2.AsyncClient, database: Database
) -> None:
    members = {role.value: role for role in (Role.admin, Role.write, Role.contributor, Role.read)}
    await an_organization(database, "acme", members=members)
    # The contributor's own: the job is the organization's all the same.
    contributor = await sign_in(database, "contributor")
    job_id = await a_running_job(harness, client, contributor, path=ACME)
    keys = {name: await register(database, name) for name in members}

    for name in ("admin", "write"):
        assert await harness.output(job_id, keys[name], "echo in") == "in\n"
    for name in ("contributor", "read"):
        assert await harness.refusal(job_id, keys[name]) == REFUSED.format(job_id)


async def test_in_a_resource_group_the_role_there_decides(
    harness: SshHarness, client: httpx2.AsyncClient, database: Database
) -> None:
    members = {"boss": Role.admin, "bob": Role.write, "eve": Role.read}
    organization = await an_organization(
        database, "acme", plan=OrganizationPlan.enterprise, members=members
    )
    group = await a_resource_group(database, organization, members={"eve": Role.write})
    boss = await sign_in(database, "boss")
    job_id = await a_running_job(harness, client, boss, path=ACME, resourceGroupId=group.id)
    keys = {name: await register(database, name) for name in members}

    assert await harness.refusal(job_id, keys["bob"]) == REFUSED.format(job_id)
    assert await harness.output(job_id, keys["eve"], "echo in") == "in\n"
    assert await harness.output(job_id, keys["boss"], "echo in") == "in\n"


async def test_an_account_that_is_off_opens_nothing(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    async with harness.database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, "ada"))

    assert await harness.refusal(job_id, key) == REFUSED.format(job_id)


async def test_an_address_has_so_many_tries(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    quota = harness.gateway.policy.quota
    for _ in range(quota):
        harness.gateway.limiter.count(harness.gateway.policy, "127.0.0.1")

    assert await harness.refusal(job_id, key) == REFUSED.format(job_id)


async def test_a_key_that_fits_costs_no_try(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")

    for _ in range(3):
        await harness.output(job_id, key, "true")

    verdict = harness.gateway.limiter.count(harness.gateway.policy, "127.0.0.1")
    assert verdict.remaining == harness.gateway.policy.quota - 1


async def test_one_connection_tries_ten_keys(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    wrong = [a_key().private for _ in range(10)]

    refusal = await harness.refusal(job_id, None, client_keys=[*wrong, key.private])
    fits = await harness.entered(job_id, None, client_keys=[*wrong[:4], key.private])
    fits.abort()

    assert refusal == "PermissionDenied: Too many keys were tried."


async def leaves(harness: SshHarness, conn: asyncssh.SSHClientConnection) -> None:
    """Insist that a guest is shown out within seconds."""
    await asyncio.wait_for(conn.wait_closed(), SOON_SECONDS)


async def test_who_removes_a_key_is_shown_out(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key, other = await register(harness.database, "ada"), await register(harness.database, "ada")
    stays = await harness.entered(job_id, other)
    goes = await harness.entered(job_id, key)
    sleeping = await goes.create_process("sleep 50")

    assert (await client.delete(f"/api/settings/ssh-keys/{key.id}", headers=ada)).status_code == 200

    await leaves(harness, goes)
    assert sleeping.exit_status is None
    assert (await stays.run("echo still here")).stdout == "still here\n"
    stays.close()


async def test_who_is_removed_from_the_organization_is_shown_out(
    harness: SshHarness, client: httpx2.AsyncClient, database: Database
) -> None:
    members = {"boss": Role.admin, "bob": Role.write}
    organization = await an_organization(database, "acme", members=members)
    job_id = await a_running_job(harness, client, await sign_in(database, "boss"), path=ACME)
    conn = await harness.entered(job_id, await register(database, "bob"))
    bob = await a_user(database, "bob")

    async with database.transaction() as transaction:
        await organizations.remove_member(transaction, OPERATOR, organization, bob)

    await leaves(harness, conn)


async def test_whose_account_is_switched_off_is_shown_out(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    conn = await harness.entered(job_id, await register(harness.database, "ada"))

    async with harness.database.transaction() as transaction:
        user = await accounts.get_user(transaction, "ada")
        await accounts.disable_user(transaction, user)

    await leaves(harness, conn)


@pytest.fixture
def without_a_back_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is looked at by the clock."""
    monkeypatch.setattr(server, "_BACK_STOP_SECONDS", 3600.0)


@pytest.mark.usefixtures("without_a_back_stop")
async def test_all_connections_of_an_account_that_is_switched_off_end_at_the_word(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    keys = [await register(harness.database, "ada") for _ in range(2)]
    conns = [await harness.entered(job_id, key) for key in (*keys, keys[0])]

    async with harness.database.transaction() as transaction:
        user = await accounts.get_user(transaction, "ada")
        await accounts.disable_user(transaction, user)

    for conn in conns:
        await leaves(harness, conn)


@pytest.mark.usefixtures("without_a_back_stop")
async def test_who_came_by_a_key_that_is_removed_leaves_at_the_word(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    conn = await harness.entered(job_id, key)

    removed = await client.delete(f"/api/settings/ssh-keys/{key.id}", headers=ada)

    assert removed.status_code < 300
    await leaves(harness, conn)


@pytest.mark.usefixtures("without_a_back_stop")
async def test_who_is_removed_from_the_organization_leaves_at_the_word_and_others_stay(
    harness: SshHarness, client: httpx2.AsyncClient, database: Database
) -> None:
    members = {"boss": Role.admin, "bob": Role.write}
    organization = await an_organization(database, "acme", members=members)
    job_id = await a_running_job(harness, client, await sign_in(database, "boss"), path=ACME)
    stays = await harness.entered(job_id, await register(database, "boss"))
    goes = await harness.entered(job_id, await register(database, "bob"))
    bob = await a_user(database, "bob")

    async with database.transaction() as transaction:
        await organizations.remove_member(transaction, OPERATOR, organization, bob)

    await leaves(harness, goes)
    assert (await stays.run("echo still here")).stdout == "still here\n"
    stays.close()


@pytest.mark.usefixtures("without_a_back_stop")
async def test_who_is_in_a_job_that_ends_leaves_at_the_word(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    conn = await harness.entered(job_id, await register(harness.database, "ada"))

    async with harness.database.transaction() as transaction:
        await transaction.execute("UPDATE jobs SET stage = 'CANCELED' WHERE id = $1", job_id)
        transaction.wake(JOBS)

    await leaves(harness, conn)


async def test_another_attempt_is_another_place(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    conn = await harness.entered(job_id, await register(harness.database, "ada"))

    async with harness.database.transaction() as transaction:
        await transaction.execute(
            "UPDATE job_attempts SET handle = 'elsewhere' WHERE job_id = $1", job_id
        )

    await leaves(harness, conn)


async def test_who_does_nothing_for_long_is_shown_out(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_running_job(harness, client, ada)
    conn = await harness.entered(job_id, await register(harness.database, "ada"))
    async with asyncio.timeout(SOON_SECONDS):
        while not harness.gateway.guests():
            await asyncio.sleep(0.02)
    for door in harness.gateway.guests():
        door.touched_at = clock.monotonic() - 1801

    await leaves(harness, conn)


async def test_the_audit_log_of_the_organization_tells_who_came(
    harness: SshHarness, client: httpx2.AsyncClient, database: Database
) -> None:
    members = {"boss": Role.admin, "bob": Role.write}
    await an_organization(database, "acme", plan=OrganizationPlan.enterprise, members=members)
    boss = await sign_in(database, "boss")
    job_id = await a_running_job(harness, client, boss, path=ACME)
    key = await register(database, "bob")
    await harness.output(job_id, key, "echo secret")

    response = await client.get(
        "/api/organizations/acme/audit-log", headers=boss, params={"action": "job.ssh"}
    )

    [line] = response.json()
    bob = await a_user(database, "bob")
    assert line == {
        "id": line["id"],
        "at": line["at"],
        "action": "job.ssh",
        "actor": {"id": bob.id, "name": "bob"},
        "target": job_id,
        "details": {"key": key.fingerprint},
        "address": "127.0.0.1",
    }
