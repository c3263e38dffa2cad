"""The list of sandboxes."""

from __future__ import annotations

from provisioner.sandboxes.forms import SandboxFilterForm
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import sandboxes_matching
from provisioner.web.lists.listing import Chip, Column, Listing

SANDBOXES = Listing[Sandbox](
    name="sandboxes",
    one="sandbox",
    many="sandboxes",
    columns=(
        Column("name", "Name", "name", "name"),
        Column("server", "Copy of", "perforce_server.name", "perforce_server__name"),
        Column("purpose", "Purpose", "purpose", "purpose"),
        Column("state", "State", "state", "state"),
        Column("p4port", "P4PORT", "p4port"),
        Column("release", "p4d", "release", "release__numbers"),
        Column("owner", "Owner", "owner.username", "owner__username"),
        Column("expires_at", "Ends", "expires_at", "expires_at"),
        Column("retired_at", "", "retired_at", goes_with="expires_at"),
        Column("status_message", "", "status_message", goes_with="state"),
    ),
    cells="sandboxes/_cells.html",
    matching=sandboxes_matching,
    usual="name",
    form=SandboxFilterForm,
    chips=(
        Chip(label="Failed", query={"state": Sandbox.State.FAILED}),
        Chip(label="Retired", query={"state": Sandbox.State.RETIRED}),
    ),
    quiet_below=10,
    nothing="There is no sandbox.",
)
