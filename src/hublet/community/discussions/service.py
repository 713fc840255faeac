"""Rules of discussions: who may list, open, read, comment on and change them."""

from dataclasses import replace

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji_store
from hublet.community.discussions import store
from hublet.community.discussions.records import (
    CLOSED_STATUSES,
    OPEN_STATUSES,
    DiscussionFilters,
    DiscussionList,
    DiscussionRecord,
    DiscussionRights,
    DiscussionSort,
    NewDiscussion,
    ThreadPage,
    is_open_pull_request_of,
)
from hublet.community.errors import (
    DiscussionNotFound,
    DiscussionsDisabled,
    NotYourComment,
    NotYourDiscussion,
    PullRequestRefDeleted,
    StatusUnchanged,
    TitleUnchanged,
)
from hublet.community.threads import service as threads
from hublet.community.threads import store as thread_store
from hublet.community.threads.mentions import referenced_threads
from hublet.community.threads.records import (
    Comment,
    Thread,
    ThreadChange,
    ThreadKind,
    ThreadStatus,
)
from hublet.community.threads.service import ThreadContext, ThreadDifference
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.errors import NotAllowed, NotFound
from hublet.core.ids import new_object_id
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import RIGHTS_TO_PROPOSE
from hublet.repos.errors import RepoMoved, RepoNotFound
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

PAGE_SIZE = 50


def context_of(repo: Repo) -> ThreadContext:
    """Return the context of a repository's discussions: who may see it may read them."""

    async def may_read(conn: Reader, user_id: str) -> bool:
        is_open = await repos.may(conn, None, repo, Right.see)
        return is_open or await repos.may_user(conn, user_id, repo, Right.see)

    return ThreadContext(may_read=may_read, repo=repos.snapshot(repo))


async def get(
    conn: Reader,
    caller: Caller | None,
    address: RepoAddress,
    number: int,
    *,
    right: Right = Right.see,
) -> DiscussionRecord:
    return await get_in_repo(conn, await repos.get(conn, caller, address, right), number)


async def get_for_change(
    conn: Connection,
    caller: Caller,
    address: RepoAddress,
    number: int,
    *,
    right: Right = Right.discuss,
) -> DiscussionRecord:
    """Return a discussion like `get`, and lock it until the transaction ends."""
    # A trusted publisher writes files; what people discuss is not its business.
    is_publisher = caller.published_repo_id is not None
    repo = await repos.get(conn, caller, address, Right.discuss if is_publisher else right)
    await lock(conn, repo.id, number)
    return await get_in_repo(conn, repo, number)


async def lock(conn: Connection, repo_id: str, number: int) -> None:
    """Lock a discussion until the transaction ends."""
    await conn.lock(f"discussion {repo_id} {number}")


async def get_in_repo(conn: Reader, repo: Repo, number: int) -> DiscussionRecord:
    thread = await store.find(conn, repo.id, number)
    if thread is None:
        raise DiscussionNotFound(repo.full_name, number)
    return DiscussionRecord(repo=repo, thread=thread)


def check_enabled(repo: Repo) -> None:
    if repo.discussions_disabled:
        raise DiscussionsDisabled(repo.full_name)


async def check_author_or_writer(
    conn: Reader, caller: Caller, discussion: DiscussionRecord, action: str
) -> None:
    if discussion.thread.author_id == caller.user_id:
        return
    if not await repos.may_user(conn, caller.user_id, discussion.repo, Right.write):
        raise NotYourDiscussion(action)


async def get_thread_page(
    conn: Reader, caller: Caller | None, repo: Repo, number: int
) -> ThreadPage:
    user_id = "" if caller is None else caller.user_id
    page = await store.find_page(conn, repo.id, number, user_id=user_id)
    if page is None:
        raise DiscussionNotFound(repo.full_name, number)
    return page


def rights_of(
    caller: Caller | None, discussion: DiscussionRecord, rights: frozenset[Right]
) -> DiscussionRights:
    """Return what the caller may do who has these rights, by the rules that hold when it is done."""
    repo, thread = discussion.repo, discussion.thread
    if caller is None or Right.discuss not in rights:
        return DiscussionRights()
    may_write = Right.write in rights
    is_open = thread.is_pull_request and thread.status in OPEN_STATUSES
    may_push = may_write or (
        rights.issuperset(RIGHTS_TO_PROPOSE) and is_open_pull_request_of(thread, caller.user_id)
    )
    return DiscussionRights(
        may_discuss=True,
        may_comment=not repo.discussions_disabled,
        may_change=may_write or thread.author_id == caller.user_id,
        may_write=may_write,
        may_push=is_open and may_push,
    )


async def get_page(
    conn: Reader,
    caller: Caller | None,
    address: RepoAddress,
    filters: DiscussionFilters,
    *,
    number: int,
) -> DiscussionList:
    """Return a page of a repository's discussions; the first one has the number 0."""
    repo = await repos.get(conn, caller, address, Right.see)
    start = number * PAGE_SIZE
    page = await store.list_of(conn, repo.id, filters, start=start, limit=PAGE_SIZE)
    counts = await store.count_of(conn, repo.id, filters)
    return DiscussionList(
        discussions=[DiscussionRecord(repo=repo, thread=thread) for thread in page],
        accounts=await find_accounts(conn, [thread.author_id for thread in page]),
        emoji=await emoji_store.count_of_threads(conn, [thread.id for thread in page]),
        start=start,
        count=sum(counts.get(status, 0) for status in filters.statuses),
        open=sum(counts.get(status, 0) for status in OPEN_STATUSES),
        closed=sum(counts.get(status, 0) for status in CLOSED_STATUSES),
    )


async def count_open(conn: Reader, repo: Repo) -> int:
    """Count the open discussions and pull requests of a repository."""
    counts = await store.count_of(conn, repo.id, DiscussionFilters())
    return sum(count for status, count in counts.items() if status not in CLOSED_STATUSES)


async def list_open(conn: Reader, repo: Repo, *, limit: int) -> list[DiscussionRecord]:
    """Return the open discussions and pull requests of a repository, the last changed first."""
    filters = DiscussionFilters(statuses=OPEN_STATUSES, sort=DiscussionSort.trending)
    found = await store.list_of(conn, repo.id, filters, start=0, limit=limit)
    return [DiscussionRecord(repo=repo, thread=thread) for thread in found]


async def open_discussion(
    conn: Connection, caller: Caller, address: RepoAddress, new: NewDiscussion
) -> DiscussionRecord:
    repo = await repos.get(conn, caller, address, Right.discuss)
    return await add(conn, caller, repo, new)


async def add(conn: Connection, caller: Caller, repo: Repo, new: NewDiscussion) -> DiscussionRecord:
    """Add a discussion, or a pull request without its ref, under the next number."""
    check_enabled(repo)
    number = await store.next_number(conn, repo.id)
    if number is None:
        raise RepoNotFound
    at = now()
    thread = Thread(
        id=new_object_id(),
        kind=ThreadKind.discussion,
        title=new.title,
        author_id=caller.user_id,
        repo_id=repo.id,
        number=number,
        is_pull_request=new.base is not None,
        status=new.status,
        base=new.base,
        created_at=at,
        updated_at=at,
    )
    await thread_store.add(conn, thread)
    comment = await threads.open_thread(
        conn, thread, context_of(repo), actor_id=caller.user_id, message=new.description
    )
    discussion = DiscussionRecord(repo=repo, thread=thread)
    if comment is not None:
        await _index_references(conn, caller, discussion, comment)
    return discussion


async def comment(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    text: str,
    *,
    parent_id: str | None = None,
) -> Comment:
    """Answer in a discussion, whatever its status."""
    check_enabled(discussion.repo)
    comment = await threads.add_comment(
        conn,
        discussion.thread,
        context_of(discussion.repo),
        author_id=caller.user_id,
        raw=text,
        parent_id=parent_id,
    )
    await _index_references(conn, caller, discussion, comment)
    return comment


async def _index_references(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, comment: Comment
) -> None:
    """Store which other threads a comment names, of those that its author may see."""
    named: set[str] = set()
    for name, numbers in referenced_threads(comment.raw).items():
        repo = await _find_named_repo(conn, caller, name) if name else discussion.repo
        if repo is None:
            continue
        found = [await store.find(conn, repo.id, number) for number in numbers]
        named.update(thread.id for thread in found if thread is not None)
    if comment.edited_at is not None:
        await store.remove_references(conn, comment.id)
    await store.add_references(conn, comment.id, named - {discussion.thread.id})


async def _find_named_repo(conn: Reader, caller: Caller, name: str) -> Repo | None:
    *kind, namespace, last = name.split("/")
    types = {each.plural: each for each in RepoType}
    repo_type = types[kind[0]] if kind else RepoType.model
    address = RepoAddress(type=repo_type, namespace=namespace, name=last)
    try:
        return await repos.get(conn, caller, address, Right.see)
    except (NotFound, NotAllowed, RepoMoved):
        return None


async def edit_comment(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, comment_id: str, text: str
) -> Comment:
    check_enabled(discussion.repo)
    comment = await threads.get_comment(conn, discussion.thread, comment_id)
    if comment.author_id != caller.user_id:
        raise NotYourComment("edit")
    context = context_of(discussion.repo)
    edited = await threads.edit_comment(
        conn, discussion.thread, context, comment, actor_id=caller.user_id, raw=text
    )
    await _index_references(conn, caller, discussion, edited)
    return edited


async def hide_comment(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, comment_id: str
) -> Comment:
    """Hide one's own comment, or anybody's in a repository that one may write to."""
    comment = await threads.get_comment(conn, discussion.thread, comment_id)
    is_own = comment.author_id == caller.user_id
    if not is_own and not await repos.may_user(conn, caller.user_id, discussion.repo, Right.write):
        raise NotYourComment("hide")
    await store.remove_references(conn, comment.id)
    return await threads.hide_comment(
        conn, discussion.thread, context_of(discussion.repo), comment, actor_id=caller.user_id
    )


async def rename(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, title: str
) -> ThreadChange:
    await check_author_or_writer(conn, caller, discussion, f"rename this {discussion.noun}")
    thread = discussion.thread
    if title == thread.title:
        raise TitleUnchanged(discussion.noun)
    change = await threads.record_change(
        conn,
        thread,
        "title-change",
        actor_id=caller.user_id,
        data={"from": thread.title, "to": title},
    )
    difference = ThreadDifference(changed=("title",), event_id=change.id)
    await _update(conn, caller, discussion, replace(thread, title=title), difference)
    return change


async def set_status(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    status: ThreadStatus,
    *,
    message: str | None,
) -> ThreadChange:
    """Close or open a discussion, with a comment if there is a message.

    Opening a draft makes it ready, opening a closed one reopens it.
    """
    verb = "close" if status is ThreadStatus.closed else "open"
    await check_author_or_writer(conn, caller, discussion, f"{verb} this {discussion.noun}")
    if discussion.thread.status in {status, ThreadStatus.merged}:
        raise StatusUnchanged(discussion.noun, str(discussion.thread.status))
    if status is ThreadStatus.open:
        await _check_ref(conn, discussion)
    if message is not None:
        await comment(conn, caller, discussion, message)
    return await record_status(conn, caller, discussion, replace(discussion.thread, status=status))


async def _check_ref(conn: Reader, discussion: DiscussionRecord) -> None:
    if discussion.thread.is_pull_request and (
        await refs.find_sha(conn, discussion.repo, discussion.ref) is None
    ):
        raise PullRequestRefDeleted


async def record_status(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    after: Thread,
) -> ThreadChange:
    """Write a thread with its new status, and add the change to its history."""
    change = await threads.record_change(
        conn,
        after,
        "status-change",
        actor_id=caller.user_id,
        data={"status": after.status},
    )
    difference = ThreadDifference(changed=("status",), event_id=change.id)
    await _update(conn, caller, discussion, after, difference)
    return change


async def set_pinned(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, *, pinned: bool
) -> None:
    """Pin a discussion to the top of the list, or unpin it; doing it again changes nothing."""
    if discussion.thread.pinned is pinned:
        return
    after = replace(discussion.thread, pinned=pinned)
    change = await threads.record_change(
        conn, after, "pinning-change", actor_id=caller.user_id, data={"pinned": pinned}
    )
    difference = ThreadDifference(changed=("pinned",), event_id=change.id)
    await _update(conn, caller, discussion, after, difference)


async def _update(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    after: Thread,
    difference: ThreadDifference,
) -> None:
    context = context_of(discussion.repo)
    await threads.update(conn, after, context, difference, actor_id=caller.user_id)
