"""The command `hublet` with one reaction more: it notes the refs that events name, in a table."""

from hublet.cli import main
from hublet.core.database import Connection
from hublet.core.outbox import reacts_to
from hublet.events import RepoContentUpdated


@reacts_to(RepoContentUpdated)
async def note(conn: Connection, event: RepoContentUpdated) -> None:
    await conn.execute_many(
        "INSERT INTO noted (repo_id, ref, old_sha, new_sha) VALUES ($1, $2, $3, $4)",
        [(event.repo.id, each.ref, each.old_sha, each.new_sha) for each in event.updated_refs],
    )


if __name__ == "__main__":
    main()
