"""Honest gaps: operations of the public service that this hub does not have answer 501.

A feature that builds one of them deletes its line here. Until the line is gone nothing
breaks: this router is the last of the app, so a real route always wins.
"""

from collections.abc import Iterator
from functools import cache
from typing import NoReturn

from fastapi import Request
from starlette.routing import Match, compile_path
from starlette.types import Scope

from hublet.core.dataclasses import dataclass
from hublet.core.errors import NotImplementedHere
from hublet.core.http.routers import DeferredRoute, Router

# One line for each address: methods, path, tag, and what it is ("This hub has no ... yet").
# (a|b) stands for two addresses, {repos} for the four kinds of git repository, ANY for every
# method. {repo:path} and its like match slashes too, so the longer paths come first.
_TABLE = """

# Client contract 7: people and organizations.
GET              /api/users/{user}/billing/usage/live                                   users               billing
GET              /api/settings/metrics/live                                             users               live metrics of an account (those of a job are at /api/jobs/{namespace}/{id}/metrics)
GET              /api/settings/billing/{rest:path}                                      users               billing
GET              /api/organizations/{org}/billing/{rest:path}                           orgs                billing
PUT              /api/organizations/{org}/settings/sso/credentials                      orgs                single sign-on by an organization

# Client contract 7 and 8: what only datasets, spaces, kernels and containers have.
GET              /api/spaces/zero-gpu/quota                                             spaces              ZeroGPU
GET              /api/spaces/{repo:path}/runtime                                        spaces              space runtime
POST             /api/spaces/{repo:path}/(hardware|sleeptime|pause|restart|dev-mode)    spaces              space runtime
POST             /api/spaces/{repo:path}/custom-domain                                  spaces              custom domains
GET POST DELETE  /api/spaces/{repo:path}/(secrets|variables)                            spaces              space settings
PUT DELETE       /api/spaces/{repo:path}/volumes                                        spaces              space volumes
GET              /api/spaces/{repo:path}/logs/{kind}                                    spaces              space logs
GET              /api/spaces/{repo:path}/(events|metrics)                               spaces              space events
POST             /api/kernels/access-request/approve                                    kernels             kernels

# Client contract 6: repositories and their content.

# Inference and documents of the public service.
GET POST         /api/partners/{provider}/models                                        inference-providers inference providers
PUT              /api/partners/{provider}/models/{id}/status                            inference-providers inference providers
POST PUT         /api/settings/inference-providers/{rest:path}                          inference-providers inference providers
POST             /api/settings/inference-providers                                      inference-providers inference providers
POST             /api/inference-endpoints/{name:path}/auth-check/{permission}           inference-endpoints inference endpoints
"""

_KINDS = ("models", "datasets", "spaces", "kernels")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    method: str
    path: str
    tag: str
    what: str

    def sentence(self, *, base_url: str) -> str:
        path = self.path.replace(":path}", "}")
        return (
            f"This hub has no {self.what} yet: {self.method} {path} is not available here. "
            f"See {base_url}/docs for what is."
        )


def _gaps(table: str) -> Iterator[Gap]:
    for line in table.splitlines():
        if not line or line.startswith("#"):
            continue
        methods, path, tag, what = _columns(line)
        for kind in _KINDS if "{repos}" in path else ("",):
            kind_tag = tag.replace("{repos}", kind)
            for exact in _each_alternative(path.replace("{repos}", kind)):
                for method in _METHODS if methods == "ANY" else methods.split():
                    yield Gap(method=method, path=exact, tag=kind_tag, what=what)


def _columns(line: str) -> tuple[str, str, str, str]:
    methods, slash, rest = line.partition(" /")
    path, tag, what = (slash + rest).split(maxsplit=2)
    return methods.strip(), path, tag, what


def _each_alternative(path: str) -> Iterator[str]:
    start, bracket, rest = path.partition("(")
    if not bracket:
        yield path
        return
    choices, _, end = rest.partition(")")
    for choice in choices.split("|"):
        yield from _each_alternative(start + choice + end)


GAPS: tuple[Gap, ...] = tuple(_gaps(_TABLE))


_compiled = cache(compile_path)
# The part of a path before its first parameter; it decides almost always, without a pattern.
_STARTS = [(gap.method, gap.path.partition("{")[0], gap) for gap in GAPS]


def find_gap(method: str, path: str) -> Gap | None:
    """Return the first gap that a request falls into."""
    for gap_method, start, gap in _STARTS:
        if gap_method == method and path.startswith(start):
            pattern, _, _ = _compiled(gap.path)
            if pattern.match(path):
                return gap
    return None


class _GapRoute(DeferredRoute):
    """One route for the whole table: hundreds would cost every unknown address milliseconds."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and (gap := find_gap(scope["method"], scope["path"])):
            return Match.FULL, {"endpoint": self.endpoint, "route": self, "gap": gap}
        return Match.NONE, {}


router = Router(route_class=_GapRoute, include_in_schema=False)


@router.api_route("/{path:path}", methods=list(_METHODS), response_model=None)
async def refuse(request: Request) -> NoReturn:
    gap: Gap = request.scope["gap"]
    raise NotImplementedHere(gap.sentence(base_url=request.app.state.settings.base_url))


ROUTERS: tuple[Router, ...] = (router,)
