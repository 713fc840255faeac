"""What only pull requests have on the wire."""

from pydantic import MISSING

from hublet.community.threads.schemas import CommentText
from hublet.core.schema import Schema


class MergePullRequest(Schema):
    comment: CommentText | MISSING = MISSING


class MergedPullRequest(Schema):
    mergeCommitId: str
