"""Which TLS server keys this process trusts: pinned ones, and no others.

The library takes P4TRUST only from the environment, so all connections of the process
share one file. It is private, and created when the first key is pinned.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
import uuid
from pathlib import Path

_lock = threading.Lock()
_path = Path(tempfile.gettempdir()) / f"cloneyard-p4trust-{uuid.uuid4().hex}"

os.environ["P4TRUST"] = str(_path)


def pin(port: str, *, fingerprint: str) -> None:
    """Trust this fingerprint for the port and no other; trust none if it is "".

    The fingerprint is the SHA-1 of the server's public key as upper-case hexadecimal
    with colons, as `p4 trust -l` and `p4d -Gf` show it.

    Source: p4 trust,
    https://help.perforce.com/helix-core/server-apps/cmdref/current/Content/CmdRef/p4_trust.html
    """
    address = port.partition(":")[2]
    with _lock:
        lines = _path.read_text().splitlines() if _path.exists() else []
        kept = [line for line in lines if not line.startswith(f"{address}=")]
        wanted = [f"{address}=**++**:{fingerprint.upper()}"] if fingerprint else []
        if not _path.exists() or kept + wanted != lines:
            _replace([*kept, *wanted])


def _replace(lines: list[str]) -> None:
    """Replace the file atomically: others may be reading it."""
    handle, draft = tempfile.mkstemp(prefix=_path.name, dir=_path.parent)
    with os.fdopen(handle, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))
    os.rename(draft, _path)


@atexit.register
def _forget() -> None:
    _path.unlink(missing_ok=True)
