"""What schemathesis has to be told before it can write our bodies."""

import schemathesis

# Lines of JSON are text to it; most of what it makes up is no JSON anyway.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
# The same for what git sends.
for service in ("upload", "receive"):
    schemathesis.serializer.alias(f"application/x-git-{service}-pack-request", "text/plain")
