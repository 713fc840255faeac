"""The HTTP edge: everything between the socket and a feature's routes."""

from hublet.core.http.edge import Edge
from hublet.core.http.hot import HotRoute
from hublet.core.http.rendering import install_error_handlers
from hublet.core.http.routers import Router, add_routes
from hublet.core.http.transactions import Conn, Db, ReadConn

__all__ = [
    "Conn",
    "Db",
    "Edge",
    "HotRoute",
    "ReadConn",
    "Router",
    "add_routes",
    "install_error_handlers",
]
