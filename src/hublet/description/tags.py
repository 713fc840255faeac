"""Tags of operations, in the order of the interface."""

from typing import Any

# Interface 1 names the first 27 and their order; the last two are our own.
TAGS = {
    "auth": "Who the caller is, and taking leaked credentials out of use.",
    "models": "Model repositories: information, files, branches and tags.",
    "kernels": "Kernel repositories: compute kernels and their builds.",
    "datasets": "Dataset repositories: information, files, branches and tags.",
    "sql-console": "Saved queries over the data of a dataset.",
    "discussions": "Discussions and pull requests, with their comments.",
    "spaces": "Space repositories and the apps that run from them.",
    "repo-search": "Finding repositories by words.",
    "repos": "Creating, moving, copying and deleting repositories of any type.",
    "users": "People: overview, followers, likes, own settings.",
    "orgs": "Organizations: overview, members, roles, audit log.",
    "service-accounts": "Accounts of an organization that belong to a program, not a person.",
    "jobs": "Programs that run once, on a trigger or on a schedule.",
    "resource-groups": "Parts of an organization with members and rules of their own.",
    "papers": "Papers, their authors and their links to repositories.",
    "collections": "Lists of repositories and papers that somebody put together.",
    "buckets": "File storage without git.",
    "containers": "Image repositories for a container registry.",
    "notifications": "The inbox, what is watched, and what is sent by mail.",
    "inference-providers": "Inference through outside providers.",
    "inference-endpoints": "Inference on machines of one's own.",
    "mcp": "Tools for the Model Context Protocol.",
    "oauth": "Sign-in with OAuth 2 and OpenID Connect, device codes, token exchange.",
    "docs": "This description in three forms: JSON, Markdown and a page.",
    "webhooks": "Calls to a URL, or jobs, that follow what happens on the hub.",
    "scim": "Members of an organization managed by an identity provider.",
    "agents": "What coding agents ask of a hub.",
    "administration": "What only an administrator of this hub may do.",
    "operations": "Health and figures for those who run this hub.",
}


def tag_objects() -> list[dict[str, Any]]:
    return [{"name": name, "description": sentence} for name, sentence in TAGS.items()]
