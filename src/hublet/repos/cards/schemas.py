"""Metadata checks on the wire."""

from typing import Literal

from pydantic import MISSING

from hublet.core.schema import Schema


class ValidateYaml(Schema):
    """A whole README.md, to be looked at before it is uploaded."""

    content: str
    repoType: Literal["model", "dataset", "space", "kernel"] | MISSING = MISSING


class Remark(Schema):
    message: str


class YamlVerdict(Schema):
    """The metadata is good; warnings are worth reading."""

    errors: list[Remark]
    warnings: list[Remark]


class YamlRefused(Schema):
    """What is wrong with the metadata: everything in one sentence, and each problem alone."""

    error: str
    errors: list[Remark] | MISSING = MISSING
    warnings: list[Remark] | MISSING = MISSING
