"""Which keys of TLS servers this process trusts: those that are pinned, no others.

The library reads P4TRUST from the environment alone, so there is one file for all
connections of the process. It is private, and made when the first key is pinned.
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
    """Trust this fingerprint for the port and no other; none where it is "".

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
    """Write a new file and put it in place at once; others may be reading."""
    handle, draft = tempfile.mkstemp(prefix=_path.name, dir=_path.parent)
    with os.fdopen(handle, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))
    os.rename(draft, _path)


@atexit.register
def _forget() -> None:
    _path.unlink(missing_ok=True)
