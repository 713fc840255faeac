"""HTTP for the caller's own SSH keys."""

from hublet.accounts.settings.ssh_keys import service, store
from hublet.accounts.settings.ssh_keys.schemas import AddSshKey, SshKey
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(prefix="/api/settings/ssh-keys", tags=["users"])


@router.get("")
async def list_ssh_keys(conn: ReadConn, caller: AccountOwner) -> list[SshKey]:
    """List the caller's own SSH keys, oldest first."""
    return [SshKey.of(key) for key in await store.list_of(conn, user_id=caller.user_id)]


@router.post("", responses={409: {"description": "The key belongs to an account already."}})
async def add_ssh_key(conn: Conn, caller: AccountOwner, body: AddSshKey) -> SshKey:
    """Register an SSH key: the line of an `id_….pub` file."""
    key = await service.add(conn, user_id=caller.user_id, title=body.title, text=body.key)
    return SshKey.of(key)


@router.delete("/{key_id}")
async def remove_ssh_key(conn: Conn, caller: AccountOwner, key_id: str) -> Done:
    """Remove an SSH key; nobody can log in with it any more."""
    await service.remove(conn, key_id, user_id=caller.user_id)
    return Done()
