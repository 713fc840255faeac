"""Requests on their way into the spool and out of it: nothing in them opens a door."""

from hublet.receiver.http.requests import Received
from hublet.receiver.spool.records import Spooled
from hublet.receiver.surroundings import new_id

# A disk is read by others than the one who was trusted with these.
_NOT_KEPT = {"x-webhook-secret", "webhook-signature", "authorization", "cookie"}


def delivery_of(received: Received) -> Spooled:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in received.scope["headers"]
    ]
    # Without an id there is no way to know it again; each is one of its own then.
    delivery_id = next((value for name, value in headers if name == "webhook-id"), None)
    return Spooled(
        path=received.path,
        delivery_id=delivery_id or new_id(),
        query=received.scope["query_string"],
        headers=[(name, value) for name, value in headers if name not in _NOT_KEPT],
        body=received.body,
    )


def received_of(spooled: Spooled) -> Received:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in spooled.headers]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": spooled.path,
        "raw_path": spooled.path.encode(),
        "root_path": "",
        "query_string": spooled.query,
        "headers": headers,
        "client": None,
        "server": None,
    }
    return Received(path=spooled.path, scope=scope, body=spooled.body)
