"""What can be sent to another Perforce server, and what a kind of server can do.

Source: "Replication" of the Perforce administrator's guide (categories of commands); p4
help buildserver, distributed, replication.
"""

from __future__ import annotations

from django.db.models import TextChoices

from provisioner.sites.models import ServerKind


class Purpose(TextChoices):
    """What Cloneyard uses Perforce for. Those of workspaces have the same values."""

    TEMPLATE = "template", "Builds of templates"
    CI = "ci", "CI (read-only client)"
    CI_EDIT = "ci-edit", "CI that submits"
    BUILD = "build", "Build only (no Perforce client)"
    BISECTION = "bisection", "Bisections"
    DEVELOPMENT = "development", "Development"


_REFUSES = "Perforce refuses that: “Replica does not support this command.”"
_READ_ONLY = (
    "A read-only replica cannot define clients or write have lists, which “{}” needs. "
    f"{_REFUSES} Choose a build server or an edge."
)
_BUILD_SERVER = (
    "A build server runs sync for its own clients, but not edit, shelve and submit, "
    f"which “{{}}” needs. {_REFUSES} Choose an edge or a forwarding replica."
)
_EDGE = (
    "A developer's client is bound to its edge, with all work in it. Give the site the "
    "edge as its Perforce server instead."
)


def why_not(kind: ServerKind, purpose: str) -> str:
    """Return why a kind of server cannot do this, "" if it can.

    Without a purpose: why it cannot do everything.
    """
    if not purpose:
        reasons = (why_not(kind, one) for one in reversed(Purpose.values))
        return next(filter(None, reasons), "")
    label = Purpose(purpose).label
    edits = purpose in (Purpose.CI_EDIT, Purpose.DEVELOPMENT)
    if kind == ServerKind.REPLICA and purpose != Purpose.BUILD:
        return _READ_ONLY.format(label)
    if kind == ServerKind.BUILD and edits:
        return _BUILD_SERVER.format(label)
    if kind == ServerKind.EDGE and purpose == Purpose.DEVELOPMENT:
        return _EDGE
    return ""
