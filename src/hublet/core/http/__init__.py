"""HTTP edge: everything between the socket and a feature's routes."""

from hublet.core.http.edge import Edge
from hublet.core.http.error_responses import install_error_handlers
from hublet.core.http.routers import FastRoute, Router, add_routes
from hublet.core.http.transactions import Conn, Db, MayBeOld, PublicReadConn, ReadConn

__all__ = [
    "Conn",
    "Db",
    "Edge",
    "FastRoute",
    "MayBeOld",
    "PublicReadConn",
    "ReadConn",
    "Router",
    "add_routes",
    "install_error_handlers",
]
