"""p4 diskspace and license -u: where the server's files lie, and how much it holds.

Source: p4 help diskspace; the message 6658. That a tagged client gets a record of that
message's variables is inferred. Of license -u, the fields in the output that published
monitoring reads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import all_specs

_UNITS = ("B", "K", "M", "G", "T")


def diskspace(request: Request) -> None:
    """Answer `p4 diskspace` for all locations, or those named."""
    _require_super(request)
    root = request.state.config.root
    depots = all_specs(request.state.database, kind="depot")
    places = {
        **dict.fromkeys(("P4ROOT", "P4JOURNAL", "P4LOG"), root),
        "TEMP": Path(tempfile.gettempdir()),
        **{depot.name: root for depot in depots},
    }
    for name in request.args or places:
        if name not in places:
            raise CommandError(6176, depot=name)
        _tell(request, name, places[name])


def _tell(request: Request, name: str, path: Path) -> None:
    space = os.statvfs(path)
    free = space.f_bavail * space.f_frsize
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    fs_type, mount_point = _mounted(path)
    said = {
        "name": name,
        "fsType": fs_type,
        "mountpoint": mount_point,
        "freeBytes": _text(free),
        "usedBytes": _text(used),
        "totalBytes": _text(free + used),
        "pctUsed": str(100 * used // max(1, free + used)),
    }
    request.report(said, 6658, **said)


def _mounted(path: Path) -> tuple[str, str]:
    """Return the type and the mount point of the filesystem that holds a path."""
    found = ("", "")
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            _, point, fs_type, *_ = line.split(" ")
            if Path(point) in (path, *path.parents) and len(point) >= len(found[1]):
                found = (fs_type, point)
    return found


def _text(size: float) -> str:
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + _UNITS[unit]


def license_usage(request: Request) -> None:
    """Answer `p4 license -u` of a server without a license; no other form."""
    _require_super(request)
    if not request.has("u"):
        raise CommandError(7198, usage="license -u")
    database = request.state.database
    [files] = database.execute("SELECT count(DISTINCT path) FROM revisions").fetchone()
    request.record(
        {
            "isLicensed": "no",
            "userCount": str(len(list(all_specs(database, kind="user")))),
            "userLimit": "unlimited",
            "clientCount": str(len(list(all_specs(database, kind="client")))),
            "clientLimit": "unlimited",
            "fileCount": str(files),
            "fileLimit": "unlimited",
        }
    )


def _require_super(request: Request) -> None:
    if not request.state.is_super(request.user):
        raise CommandError(6185)


COMMANDS = (
    Command(
        names=("diskspace", "df"),
        run=diskspace,
        usage="diskspace [ P4ROOT | P4JOURNAL | P4LOG | TEMP | depot ]",
    ),
    Command(names=("license",), run=license_usage, usage="license -u", flags="u"),
)
