"""Rules of hub administrators: what they change is written to the activity of the hub."""

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, User
from hublet.accounts.users import service as users
from hublet.core import queue, switches
from hublet.core.database import Connection
from hublet.core.errors import NotFound
from hublet.core.hub import Switch


async def create_user(  # noqa: PLR0913 - all that an account begins with
    conn: Connection,
    actor: Actor,
    name: str,
    *,
    fullname: str | None,
    email: str | None,
    password: str | None,
    is_admin: bool,
) -> User:
    user = await users.create_user(
        conn, name, fullname=fullname, email=email, password=password, is_admin=is_admin
    )
    details = {"administrator": True} if is_admin else None
    await audit.record_for_hub(conn, actor, "user.create", target=user.name, details=details)
    return user


async def update_user(
    conn: Connection, actor: Actor, user: User, *, disabled: bool | None, is_admin: bool | None
) -> User:
    """Disable or enable an account, make its owner an administrator or not; None keeps a value."""
    updated = await users.update_as_administrator(conn, user, disabled=disabled, is_admin=is_admin)
    changes = []
    if updated.is_admin is not user.is_admin:
        changes.append("user.promote" if updated.is_admin else "user.demote")
    if (updated.disabled_at is None) is not (user.disabled_at is None):
        changes.append("user.enable" if updated.disabled_at is None else "user.disable")
    for action in changes:
        await audit.record_for_hub(conn, actor, action, target=user.name)
    return updated


async def set_password(conn: Connection, actor: Actor, user: User, password: str) -> None:
    await users.set_password(conn, user, password)
    await audit.record_for_hub(conn, actor, "user.password", target=user.name)


async def retry_tasks(conn: Connection, actor: Actor, *, task_id: str | None = None) -> int:
    """Give one parked task, or all of them, a fresh start; return how many there were."""
    count = await queue.retry_parked(conn, task_id=task_id)
    if count:
        details = {"tasks": count}
        target = task_id or "all parked tasks"
        await audit.record_for_hub(conn, actor, "task.retry", target=target, details=details)
    return count


async def drop_task(conn: Connection, actor: Actor, task_id: str) -> None:
    """Remove a parked task: what it was to do is never done."""
    task = await queue.drop_parked(conn, task_id)
    if task is None:
        raise NotFound(f"There is no parked task {task_id}.")
    details = {"kind": task.kind, "error": task.error}
    await audit.record_for_hub(conn, actor, "task.drop", target=task_id, details=details)


async def turn_switch(conn: Connection, actor: Actor, switch: Switch, *, on: bool | None) -> None:
    """Turn a switch on or off in all processes; None lets the settings decide again."""
    if on is None:
        await switches.reset_switch(conn, switch)
    else:
        await switches.set_switch(conn, switch, on=on)
    words = "as the settings say" if on is None else "on" if on else "off"
    await audit.record_for_hub(conn, actor, "switch.turn", target=switch, details={"to": words})


async def announce(
    conn: Connection, actor: Actor, text: str, *, tone: str, for_signed_in: bool, hours: float
) -> None:
    announcement = await switches.announce(
        conn, text, tone=tone, for_signed_in=for_signed_in, hours=hours
    )
    details = {"text": announcement.text}
    await audit.record_for_hub(
        conn, actor, "announcement.publish", target=announcement.id, details=details
    )


async def withdraw(conn: Connection, actor: Actor, announcement_id: str) -> None:
    withdrawn = await switches.withdraw(conn, announcement_id)
    details = {"text": withdrawn.text}
    await audit.record_for_hub(
        conn, actor, "announcement.withdraw", target=announcement_id, details=details
    )
