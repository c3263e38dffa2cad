"""The lists of checkpoints, of verifications, and of damaged files."""

from __future__ import annotations

from functools import partial

from provisioner.recipes.forms import (
    CheckpointFilterForm,
    DamagedFilterForm,
    VerificationFilterForm,
)
from provisioner.recipes.models import Checkpoint, DamagedFile, Verification
from provisioner.recipes.queries import (
    checkpoints_matching,
    damaged_matching,
    verifications_matching,
)
from provisioner.web.lists.listing import Chip, Column, Listing

_SERVER = "sandbox.perforce_server.name"

CHECKPOINTS = Listing[Checkpoint](
    name="checkpoints",
    one="checkpoint",
    many="checkpoints",
    columns=(
        Column("server", "Server", _SERVER, "sandbox__perforce_server__name"),
        Column(
            *("taken_at", "As of", "sandbox.taken_at", "sandbox__taken_at"),
            begins_descending=True,
            is_unbroken=True,
        ),
        Column("change", "Change", "change", "change", has_gaps=True, is_number=True),
        Column("journal", "Journal", "journal", is_number=True),
        Column("is_proven", "Proven", "is_proven", "is_proven"),
        Column("remark", "", "remark", goes_with="is_proven"),
        Column("size_bytes", "Size", "size_bytes", "size_bytes", is_number=True),
        Column("plain_bytes", "", "plain_bytes", goes_with="size_bytes"),
        Column(
            *("dump_seconds", "Dumped in", "dump_seconds", "dump_seconds"),
            is_number=True,
            is_unbroken=True,
        ),
        Column("replay_seconds", "", "replay_seconds", goes_with="dump_seconds"),
        Column("path", "Kept at", "path"),
        Column("host", "", "sandbox.host.name", goes_with="path"),
        Column("removed_at", "", "removed_at", goes_with="path"),
        Column("removed_because", "", "removed_because", goes_with="path"),
        Column("sha256", "", "sha256", goes_with="path"),
        Column("md5", "", "md5", goes_with="path"),
    ),
    cells="recipes/_checkpoint_cells.html",
    matching=checkpoints_matching,
    usual="-taken_at",
    form=CheckpointFilterForm,
    chips=(Chip(label="Kept", query={"kept": "yes"}),),
    quiet_below=10,
    nothing="No checkpoint was made yet.",
)

VERIFICATIONS = Listing[Verification](
    name="verifications",
    one="verification",
    many="verifications",
    columns=(
        Column("began_at", "Began", "began_at", "began_at", begins_descending=True),
        Column("server", "Server", _SERVER, "sandbox__perforce_server__name"),
        Column("sandbox", "", "sandbox.name", goes_with="server"),
        Column("taken_at", "As of", "sandbox.taken_at", is_unbroken=True),
        Column("depots", "Depots", "number", is_number=True),
        Column("bad", "Damaged", "bad", "bad", is_number=True),
        Column("missing", "Lost", "missing", "missing", is_number=True),
        Column(
            "shelved_found",
            "Shelved",
            lambda row: row.shelved_found if row.shelved else None,
            "shelved_found",
            is_number=True,
        ),
        Column(*("seconds", "Read in", "seconds"), is_number=True, is_unbroken=True),
        Column("ended_at", "", "ended_at", goes_with="seconds"),
    ),
    cells="recipes/_verification_cells.html",
    matching=verifications_matching,
    usual="-began_at",
    form=VerificationFilterForm,
    chips=(Chip(label="With damage", query={"damage": "yes"}),),
    quiet_below=10,
    nothing="No archives were verified yet.",
)


def damaged_of(verification: Verification) -> Listing[DamagedFile]:
    """Return the list of the damaged files of a verification."""
    return Listing[DamagedFile](
        name="damaged-files",
        one="file",
        many="files",
        columns=(
            Column("path", "File", "path", "path"),
            Column("revision", "Revision", "revision", is_number=True),
            Column("change", "Change", "change", "change", is_number=True),
            Column("status", "Found", lambda row: row.get_status_display(), "status"),
            Column("depot", "Depot", "depot.name", "depot__name"),
        ),
        cells="recipes/_damaged_cells.html",
        matching=partial(damaged_matching, verification),
        usual="path",
        form=DamagedFilterForm,
        quiet_below=10,
        nothing="Nothing is lost or damaged.",
    )
