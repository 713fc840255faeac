"""What guides take for granted, told as guides tell it: what is typed before they are read."""

from acceptance.guide_runner import PASSWORD

# A hub,
A_HUB = """
<!-- terminal: hub -->
```console
$ hublet serve --test-mode
…
Hublet is ready at http://localhost:8000 (stop with Ctrl+C).
```
"""
# ada, who has a token,
ADA = f"""
```console
$ hublet user add ada --password '{PASSWORD}'
$ hublet token create ada
…
hf_…
…
```
"""
# which the variables of the public client name,
VARIABLES = """
```console
$ export HF_ENDPOINT=http://localhost:8000 HF_TOKEN=hf_…
```
"""
# and a model with a file, and somebody else.
ENGINE = """
```console
$ HF_ENDPOINT=http://localhost:8000 HF_TOKEN=hf_… hf repos create ada/engine
$ echo "one shovel" > coal.txt
```
"""
GRACE = """
```console
$ hublet user add grace --email grace@example.com
$ GRACE=$(hublet token create grace)
```
"""
# A receiver that answers, and keeps the last request as it came.
RECEIVER = """
```python
# keep.py
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        Path("headers.txt").write_text(str(self.headers).strip() + "\\n")
        Path("body.json").write_bytes(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 9000), Hook)
print("It listens.")
server.serve_forever()
```
<!-- terminal: kept -->
```console
$ python keep.py
It listens.
```
"""
ANALYTICAL = """
```console
$ hublet org add analytical --owner ada
```
"""
A_FILE = """
```console
$ echo hf_… > token.txt
```
"""
ENDPOINT = """
```console
$ export HF_ENDPOINT=http://localhost:8000
```
"""

# The first start of a hub, whose token stands in the variables, and a folder to upload.
FIRST_START = """
<!-- terminal: hub -->
```console
$ hublet serve
…
│ token     hf_… │
…
Hublet is ready at http://localhost:8000 (stop with Ctrl+C).
```
```console
$ export HF_ENDPOINT=http://localhost:8000 HF_TOKEN=hf_…
$ mkdir engine && echo "one shovel" > engine/coal.txt
```
"""

# Images, logins and settings of container tools lie in the reader's folder, not in the machine's.
CONTAINER_TOOLS = """
```console
$ echo "{}" > auth.json
$ printf '[storage]\\ndriver = "vfs"\\ngraphroot = "%s"\\nrunroot = "%s"\\n' $PWD/images $PWD/run > storage.conf
$ export REGISTRY_AUTH_FILE=$PWD/auth.json CONTAINERS_STORAGE_CONF=$PWD/storage.conf BUILDAH_ISOLATION=chroot
```
"""

# By the names of the pages.
PRELUDES: dict[str, str] = {
    "browser": A_HUB + ADA + VARIABLES,
    "README": FIRST_START,
    "quickstart": "",
    "command-line": A_HUB + ADA + ENGINE + GRACE + RECEIVER + ENDPOINT + A_FILE,
    "webhooks": A_HUB + ADA + VARIABLES + ANALYTICAL,
    "receiving": A_HUB + ADA + VARIABLES + ENGINE,
    "notifications": A_HUB + ADA + ENGINE + GRACE,
    "collections": A_HUB + ADA + ENGINE + GRACE,
    "search": A_HUB + ADA + ENGINE,
    "oauth": A_HUB + ADA,
    "publishers": A_HUB + ADA + VARIABLES,
    "jobs": A_HUB + ADA + VARIABLES,
    "containers": A_HUB + ADA + VARIABLES + CONTAINER_TOOLS,
    "mcp": A_HUB + ADA + VARIABLES,
    "sql": A_HUB + ADA + VARIABLES,
    "repositories": A_HUB + ADA + VARIABLES,
    "storage": A_HUB + ADA + VARIABLES,
    "organizations": A_HUB + ADA + VARIABLES,
    "scim": A_HUB,
    "operating": A_HUB + ADA,
    "backup": A_HUB + ADA,
    "deploying": "",
    "scaling": "",
    "upgrading": A_HUB + ADA,
    "testing": "",
}
