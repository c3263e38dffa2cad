"""Mount a volume of the lab as a host would over NFS: MOUNT_COMMAND for trials.

``python -m provisioner.lab.ontap.mount --port N --ca-file FILE --password-file FILE
-o OPTIONS HOST:/PATH DIRECTORY`` asks the lab whether the export policies let this host
in, and binds the volume's directory. It needs root.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

ANSWERS_WITHIN_SECONDS = 30.0


def main() -> int:
    """Return the exit code, as mount(8) does: 32 is a mount that failed."""
    parser = argparse.ArgumentParser(prog="mount")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password-file", type=Path, required=True)
    parser.add_argument("--client", default="127.0.0.1")
    parser.add_argument("-o", dest="options", default="")
    parser.add_argument("source")
    parser.add_argument("directory")
    arguments = parser.parse_args()
    answer = _ask(arguments)
    if not answer["allowed"]:
        print(f"mount: access denied by server: {answer['reason']}", file=sys.stderr)
        return 32
    bind = ("/bin/mount", "--bind", "--", str(answer["directory"]), arguments.directory)
    return subprocess.run(bind).returncode


def _ask(arguments: argparse.Namespace) -> dict[str, object]:
    path = "/" + arguments.source.partition(":/")[2]
    query = urlencode({"client": arguments.client, "path": path})
    secret = f"{arguments.user}:{arguments.password_file.read_text().strip()}"
    basic = base64.b64encode(secret.encode()).decode()
    lab = http.client.HTTPSConnection(
        arguments.host,
        arguments.port,
        timeout=ANSWERS_WITHIN_SECONDS,
        context=ssl.create_default_context(cafile=arguments.ca_file),
    )
    with closing(lab):
        headers = {"Authorization": f"Basic {basic}"}
        lab.request("GET", f"/lab/mounts?{query}", headers=headers)
        found: dict[str, object] = json.load(lab.getresponse())
        return found


if __name__ == "__main__":
    sys.exit(main())
