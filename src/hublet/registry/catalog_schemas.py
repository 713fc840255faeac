"""Schemas of container repositories: what is known of them, their tags, images and retention."""

from typing import Any, Self

from pydantic import MISSING

from hublet.core.schema import Schema, Timestamp
from hublet.registry import catalog, records
from hublet.registry.image_documents import ImageConfig, ImageLayer
from hublet.repos.files.schemas import Bucket
from hublet.repos.records import Repo


class Container(Bucket):
    """What is known of a container; its `id` is owner/name."""

    downloads: int
    tagCount: int

    @classmethod
    def with_tags(cls, repo: Repo, *, tags: int, **more: Any) -> Self:
        known = Bucket.of(repo).model_dump()
        return cls.model_validate(known | {"downloads": repo.downloads, "tagCount": tags} | more)


class ContainerImage(Schema):
    """An image of a container; its name is owner/name, or a path below it."""

    name: str
    path: str
    tagCount: int
    manifestCount: int
    pushedAt: Timestamp

    @classmethod
    def of(cls, repo: Repo, image: records.RepoImage) -> Self:
        return cls(
            name=image_name(repo, image.path),
            path=image.path,
            tagCount=image.tags,
            manifestCount=image.manifests,
            pushedAt=image.pushed_at,
        )


class ContainerInfo(Container):
    images: list[ContainerImage]


class ContainerTag(Schema):
    """A tag of an image, with what it can run on; `size` is of all that a pull could fetch."""

    name: str
    image: str
    digest: str
    mediaType: str
    artifactType: str | None
    size: int
    platforms: list[str]
    pushedAt: Timestamp
    pushedBy: str | None

    @classmethod
    def of(cls, repo: Repo, view: catalog.TagView) -> Self:
        tag = view.tag
        return cls(
            name=tag.name,
            image=image_name(repo, tag.image),
            digest=tag.digest,
            mediaType=tag.media_type,
            artifactType=tag.artifact_type,
            size=view.size,
            platforms=list(view.platforms),
            pushedAt=tag.pushed_at,
            pushedBy=tag.pushed_by,
        )


class ContainerLayer(Schema):
    """A layer, and the step of the build that made it where the image says so."""

    digest: str
    mediaType: str
    size: int
    command: str | None

    @classmethod
    def of(cls, layer: ImageLayer) -> Self:
        return cls(
            digest=layer.digest,
            mediaType=layer.media_type,
            size=layer.size,
            command=layer.command,
        )


class ContainerImageConfig(Schema):
    """How an image runs."""

    platform: str | None
    entrypoint: list[str]
    command: list[str]
    user: str | None
    workingDirectory: str | None
    exposedPorts: list[str]

    @classmethod
    def of(cls, config: ImageConfig) -> Self:
        return cls(
            platform=config.platform,
            entrypoint=list(config.entrypoint),
            command=list(config.command),
            user=config.user,
            workingDirectory=config.working_directory,
            exposedPorts=list(config.ports),
        )


class ContainerManifestEntry(Schema):
    """A manifest that an index names; its size is null when it was not pushed."""

    digest: str
    mediaType: str
    platform: str | None
    size: int | None

    @classmethod
    def of(cls, child: catalog.ChildView) -> Self:
        return cls(
            digest=child.digest,
            mediaType=child.media_type,
            platform=child.platform,
            size=child.size,
        )


class ContainerManifest(Schema):
    """A manifest with its layers, or an index with its manifests."""

    image: str
    digest: str
    mediaType: str
    artifactType: str | None
    subject: str | None
    size: int
    tags: list[str]
    platforms: list[str]
    config: ContainerImageConfig | None
    layers: list[ContainerLayer]
    manifests: list[ContainerManifestEntry]
    pushedAt: Timestamp

    @classmethod
    def of(cls, repo: Repo, view: catalog.ManifestView) -> Self:
        manifest = view.manifest
        return cls(
            image=image_name(repo, manifest.image),
            digest=manifest.digest,
            mediaType=manifest.media_type,
            artifactType=manifest.artifact_type,
            subject=manifest.subject,
            size=view.size,
            tags=list(view.tags),
            platforms=list(view.platforms),
            config=ContainerImageConfig.of(view.config) if view.config else None,
            layers=[ContainerLayer.of(layer) for layer in view.layers],
            manifests=[ContainerManifestEntry.of(child) for child in view.children],
            pushedAt=manifest.pushed_at,
        )


class ContainerRetention(Schema):
    """Which images are kept: null keeps all.

    Of each image the `keepTags` tags that were pushed last stay; manifests that had no tag for
    `untaggedDays` days go.
    """

    keepTags: int | None
    untaggedDays: int | None

    @classmethod
    def of(cls, rule: records.RetentionRule) -> Self:
        return cls(keepTags=rule.keep_tags, untaggedDays=rule.untagged_days)


class SetContainerRetention(Schema):
    """A field that is left out keeps its value; null keeps all images."""

    keepTags: int | MISSING | None = MISSING
    untaggedDays: int | MISSING | None = MISSING

    def rule(self, before: records.RetentionRule) -> records.RetentionRule:
        return records.RetentionRule(
            keep_tags=before.keep_tags if self.keepTags is MISSING else self.keepTags,
            untagged_days=(
                before.untagged_days if self.untaggedDays is MISSING else self.untaggedDays
            ),
        )


def image_name(repo: Repo, path: str) -> str:
    return f"{repo.full_name}/{path}" if path else repo.full_name
