"""A paper as Markdown, for people and agents."""

from hublet.community.papers.records import Paper


def to_markdown(paper: Paper) -> str:
    return (
        f"# {paper.thread.title}\n\n"
        f"- Paper: {paper.id}\n"
        f"- Authors: {', '.join(paper.authors)}\n"
        f"- Published: {paper.published_at.date().isoformat()}\n\n"
        f"## Abstract\n\n{paper.summary.strip()}\n"
    )
