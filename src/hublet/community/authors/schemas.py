"""Authors on the wire."""

from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts.avatars import avatar_url
from hublet.community.authors.records import Account, Accounts
from hublet.core.schema import ObjectId, Schema


class Author(Schema):
    """A user or an organization, under whose name something stands."""

    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["user", "service-account", "org"]

    @classmethod
    def of(cls, account: Account, *, base_url: str) -> Self:
        return cls.model_validate(
            {
                "_id": account.id,
                "name": account.name,
                "fullname": account.fullname,
                "avatarUrl": avatar_url(base_url, account.id),
                "type": account.type,
            }
        )

    @classmethod
    def found(cls, account_id: str | None, accounts: Accounts, *, base_url: str) -> Self | MISSING:
        """Return the author, or nothing: clients stumble over null, never over an absent one."""
        account = accounts.get(account_id) if account_id else None
        return cls.of(account, base_url=base_url) if account else MISSING
