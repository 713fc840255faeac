"""What schemathesis has to be told before it can write our bodies."""

from typing import Any

import schemathesis

# Lines of JSON are text to it; most of what it makes up is no JSON anyway.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
# The same for what git sends.
for service in ("upload", "receive"):
    schemathesis.serializer.alias(f"application/x-git-{service}-pack-request", "text/plain")


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> Any:
    """Let half of the requests for containers and images meet one that is there."""
    if not path_parameters or context.operation is None:
        return path_parameters
    path = context.operation.path
    of_registry = path.startswith("/v2/") and "name" in path_parameters
    of_container = path.startswith("/api/containers/{namespace}/{name}/")
    if not (of_registry or of_container) or path.endswith("/events"):
        return path_parameters
    if len(str(path_parameters)) % 2:
        return path_parameters
    found = {"name": "admin/tool"} if of_registry else {"namespace": "admin", "name": "tool"}
    return path_parameters | found
