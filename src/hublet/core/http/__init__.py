"""HTTP edge: everything between the socket and a feature's routes.

What is named here is imported when it is first asked for: the server protocol and the startup gate lie
in this package too, and are there before the web framework is loaded (decision 0024).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hublet.core.http.edge import Edge
    from hublet.core.http.error_responses import install_error_handlers
    from hublet.core.http.routers import FastRoute, ImmediateRoute, Router, add_routes
    from hublet.core.http.transactions import Conn, Db, MayBeOld, PublicReadConn, ReadConn

__all__ = [
    "Conn",
    "Db",
    "Edge",
    "FastRoute",
    "ImmediateRoute",
    "MayBeOld",
    "PublicReadConn",
    "ReadConn",
    "Router",
    "add_routes",
    "install_error_handlers",
]

_MODULES = {
    "Edge": "edge",
    "install_error_handlers": "error_responses",
    **dict.fromkeys(("FastRoute", "ImmediateRoute", "Router", "add_routes"), "routers"),
    **dict.fromkeys(("Conn", "Db", "MayBeOld", "PublicReadConn", "ReadConn"), "transactions"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
