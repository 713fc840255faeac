"""What the pages of containers show, made from records without I/O."""

import shlex
from collections.abc import Sequence
from urllib.parse import quote, urlencode, urlsplit

from hublet.core.dataclasses import dataclass
from hublet.core.pages import plural
from hublet.registry.catalog import ManifestView, TagView, write_tag_cursor
from hublet.registry.records import RepoImage, is_digest
from hublet.repos.records import Repo
from hublet.web.repo_head import path_of
from hublet.web.repos.snippets import Snippet

# How many tags a page shows.
ROWS = 50
_SHORT_DIGEST = 12
# In the address of a list: the tags of all images.
ALL_IMAGES = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRow:
    name: str
    # The path of its image below the repository; empty for the repository's own.
    image: str
    href: str
    digest: str
    platforms: Sequence[str]
    view: TagView


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsPage:
    rows: Sequence[TagRow]
    images: Sequence[RepoImage]
    # The filters as they stand in the address; None: tags of all images.
    image: str | None
    search: str
    # The address of the next page; None behind the last one.
    older: str | None
    usage: Sequence[Snippet]
    # Only for a container without images.
    first_steps: Sequence[Snippet]
    tags_text: str

    @property
    def is_filtered(self) -> bool:
        return bool(self.search) or self.image is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedManifest:
    """A manifest that an index names, with its page unless it was never pushed."""

    platform: str
    digest: str
    size: int | None
    href: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePage:
    """A manifest, by its tag or its digest."""

    title: str
    crumbs: Sequence[tuple[str, str | None]]
    view: ManifestView
    manifests: Sequence[LinkedManifest]
    # Links to its tags.
    tags: Sequence[tuple[str, str]]
    # What runs without a command of one's own, as in a shell.
    runs: str
    # Where its tag is deleted; None for a page by digest.
    deletion: str | None
    usage: Sequence[Snippet]


def tags_page(
    repo: Repo,
    views: Sequence[TagView],
    *,
    images: Sequence[RepoImage],
    image: str | None,
    search: str,
    base_url: str,
) -> TagsPage:
    shown, more = views[:ROWS], views[ROWS:]
    query = {"search": search} | ({} if image is None else {"image": image})
    first = shown[0].tag if shown else None
    return TagsPage(
        rows=[_tag_row(path_of(repo), view) for view in shown],
        images=images,
        image=image,
        search=search,
        older=(f"?{urlencode(query | {'after': write_tag_cursor(shown[-1])})}" if more else None),
        usage=usage_of(repo, first.image, first.name, base_url) if first else (),
        first_steps=() if images else first_steps_of(repo, base_url),
        tags_text=plural(sum(each.tags for each in images), "tag"),
    )


def image_page(
    repo: Repo, repo_path: str, view: ManifestView, *, reference: str, base_url: str
) -> ImagePage:
    image = view.manifest.image
    is_tag = not is_digest(reference)
    config = view.config
    words = [*config.entrypoint, *config.command] if config else []
    name = f"{repo.name}/{image}" if image else repo.name
    return ImagePage(
        title=f"{name}:{reference}" if is_tag else f"{name}@{shorten(reference)}",
        crumbs=[(name, _list_path(repo_path, image)), (_label(reference), None)],
        view=view,
        manifests=[
            LinkedManifest(
                platform=each.platform or "no platform",
                digest=each.digest,
                size=each.size,
                href=None if each.size is None else image_path(repo_path, image, each.digest),
            )
            for each in view.children
        ],
        tags=[(tag, image_path(repo_path, image, tag)) for tag in view.tags],
        runs=shlex.join(words),
        deletion=f"{repo_path}/delete-tag/{_rest(image, reference)}" if is_tag else None,
        usage=usage_of(repo, image, reference, base_url, runs=shlex.join(words)),
    )


def image_path(repo_path: str, image: str, reference: str) -> str:
    """Return the address of the page of a tag or a digest."""
    return f"{repo_path}/tags/{_rest(image, reference)}"


def shorten(digest: str) -> str:
    algorithm, _, digits = digest.partition(":")
    return f"{algorithm}:{digits[:_SHORT_DIGEST]}"


def _rest(image: str, reference: str) -> str:
    return quote("/".join(filter(None, (image, reference))), safe="/:")


def _list_path(repo_path: str, image: str) -> str:
    return f"{repo_path}?{urlencode({'image': image})}" if image else repo_path


def _label(reference: str) -> str:
    return shorten(reference) if is_digest(reference) else reference


def _tag_row(repo_path: str, view: TagView) -> TagRow:
    tag = view.tag
    return TagRow(
        name=tag.name,
        image=tag.image,
        href=image_path(repo_path, tag.image, tag.name),
        digest=shorten(tag.digest),
        platforms=view.platforms,
        view=view,
    )


def pull_name(repo: Repo, image: str, reference: str, base_url: str) -> str:
    """Return the name under which tools pull an image: host, path, and tag or digest."""
    # Names of images are in lower case.
    path = "/".join(filter(None, (repo.full_name.lower(), image)))
    mark = "@" if is_digest(reference) else ":"
    return f"{urlsplit(base_url).netloc}/{path}{mark}{reference}"


def usage_of(
    repo: Repo, image: str, reference: str, base_url: str, *, runs: str = ""
) -> tuple[Snippet, ...]:
    """Return the ways to pull an image and to run it as a job of this hub."""
    name = pull_name(repo, image, reference, base_url)
    job = f"export HF_ENDPOINT={base_url}\nhf jobs run {name} {runs or 'echo hello'}"
    return (
        Snippet(name="docker", language="bash", text=f"docker pull {name}"),
        Snippet(name="podman", language="bash", text=f"podman pull {_tls_option(base_url)}{name}"),
        Snippet(name="hf jobs run", language="bash", text=job),
    )


def first_steps_of(repo: Repo, base_url: str) -> tuple[Snippet, ...]:
    """Return the ways to push the first image to a container."""
    host, name = urlsplit(base_url).netloc, pull_name(repo, "", "latest", base_url)
    user, option = repo.owner_name, _tls_option(base_url)
    return (
        Snippet(
            name="docker",
            language="bash",
            text=(
                f"# the password is a token that may write\ndocker login {host} -u {user}\n"
                f"docker build -t {name} .\ndocker push {name}"
            ),
        ),
        Snippet(
            name="podman",
            language="bash",
            text=(
                f"podman login {option}{host} -u {user}\n"
                f"podman build -t {name} .\npodman push {option}{name}"
            ),
        ),
    )


def _tls_option(base_url: str) -> str:
    """Return what podman needs for a hub without TLS; docker needs nothing on its own machine."""
    return "" if base_url.startswith("https:") else "--tls-verify=false "
