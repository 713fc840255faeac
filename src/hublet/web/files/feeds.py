"""Feeds of a repository: its commits, its tags as releases, its discussions."""

from collections.abc import Iterable
from datetime import datetime

from markupsafe import Markup

from hublet.community.discussions.records import DiscussionList
from hublet.core.dataclasses import dataclass
from hublet.repos.git.history import CommitInfo
from hublet.repos.records import Repo
from hublet.web.files.links import FileLinks
from hublet.web.rendering.feeds import Feed, FeedEntry, tag_uri

MAX_ENTRIES = 50


def commits_address(links: FileLinks) -> str:
    return f"{links.commits()}.atom"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedWriter:
    """Writes the feeds of one repository of one hub."""

    repo: Repo
    base_url: str
    links: FileLinks

    def commits(self, commits: Iterable[CommitInfo]) -> Feed:
        return self._feed(
            title=f"Commits of {self.repo.full_name}, {self.links.revision}",
            path=commits_address(self.links),
            page=self.links.commits(),
            entries=[self._commit(each, self.links.commit(each.id)) for each in commits],
        )

    def releases(self, tags: Iterable[tuple[str, CommitInfo]]) -> Feed:
        """Return the feed of tags, each with the commit that it names, newest first."""
        newest = sorted(tags, key=lambda tag: tag[1].date, reverse=True)[:MAX_ENTRIES]
        return self._feed(
            title=f"Releases of {self.repo.full_name}",
            path=f"{self.links.repo}/tags.atom",
            page=self.links.tree(),
            entries=[
                self._commit(commit, self.links.at(tag).tree(), title=tag) for tag, commit in newest
            ],
        )

    def discussions(self, page: DiscussionList) -> Feed:
        names = {account_id: account.name for account_id, account in page.accounts.items()}
        return self._feed(
            title=f"Discussions of {self.repo.full_name}",
            path=f"{self.links.repo}/discussions.atom",
            page=f"{self.links.repo}/discussions",
            entries=[
                self._entry(
                    f"{self.links.repo}/discussions/{each.number}",
                    title=f"{each.thread.title} #{each.number}",
                    author=names.get(each.thread.author_id or "", "Somebody"),
                    updated=each.thread.updated_at,
                )
                for each in page.discussions
            ],
        )

    def _feed(self, *, title: str, path: str, page: str, entries: list[FeedEntry]) -> Feed:
        return Feed(
            id=self._id(path),
            title=title,
            link=self.base_url + page,
            self_link=self.base_url + path,
            updated=max((each.updated for each in entries), default=self.repo.created_at),
            entries=tuple(entries),
        )

    def _commit(self, commit: CommitInfo, path: str, *, title: str | None = None) -> FeedEntry:
        text = f"{commit.title}\n\n{commit.message}".strip()
        return self._entry(
            path,
            title=title or commit.title,
            author=commit.author_name.strip() or "Unknown",
            updated=commit.date,
            content=Markup("<pre>{}</pre>").format(text),
        )

    def _entry(
        self,
        path: str,
        *,
        title: str,
        author: str,
        updated: datetime,
        content: Markup | None = None,
    ) -> FeedEntry:
        return FeedEntry(
            id=self._id(path),
            title=title,
            link=self.base_url + path,
            updated=updated,
            author=author,
            content=content,
        )

    def _id(self, path: str) -> str:
        """Return an id that stays when the repository gets another name."""
        host = self.base_url.partition("://")[2].partition(":")[0]
        rest = path.removeprefix(self.links.repo)
        return tag_uri(host, self.repo.created_at, f"{self.repo.id}{rest}")
