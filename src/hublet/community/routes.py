"""Routers of community, in the order in which the application looks them up."""

from hublet.community import blog_routes as blogs
from hublet.community import post_routes as posts
from hublet.community.collections import routes as collections
from hublet.community.discussions import routes as discussions
from hublet.community.papers import routes as papers
from hublet.core.http import Router

ROUTERS: tuple[Router, ...] = (
    discussions.router,
    discussions.emoji_router,
    discussions.pull_requests_router,
    papers.router,
    papers.comments_router,
    posts.router,
    posts.comments_router,
    blogs.router,
    blogs.comments_router,
    collections.router,
)
