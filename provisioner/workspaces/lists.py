"""Lists of retired workspaces: the trash, and history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from provisioner.engine.models import Operation
from provisioner.lib.sizes import size_text
from provisioner.web.lists.acts import Act, unless_refused
from provisioner.web.lists.listing import Column, Listing, searched
from provisioner.workspaces.actions.retiring import (
    refused_purges,
    refused_restores,
    workspace_purge,
    workspace_restore,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import (
    READS,
    retired_workspaces_of,
    trashed_workspaces_of,
)


class Restore(Act[Workspace]):
    name, label, done = "restore", "Restore", "Being restored"
    lead = "With their clients and opened files."

    def do(self, row: Workspace, **told: Any) -> Operation:
        return workspace_restore(by=self.by, workspace=row)

    def says(self, row: Workspace, result: Operation | None = None) -> str:
        return f"It is restored to {row.path}."

    def forecast(
        self, rows: Sequence[Workspace], told: Mapping[str, Any]
    ) -> Callable[[Workspace], str]:
        return unless_refused(refused_restores(by=self.by, workspaces=rows), self.says)


class Purge(Act[Workspace]):
    name, label, done = "purge", "Purge", "Being purged"
    lead = "They cannot be restored after that. Rescued work stays."
    is_dangerous = True

    def do(self, row: Workspace, **told: Any) -> Operation:
        return workspace_purge(by=self.by, workspace=row)

    def says(self, row: Workspace, result: Operation | None = None) -> str:
        if row.state == Workspace.State.PURGING:
            return "It is already being purged."
        if row.unique_bytes is None:
            return "It is purged. Its space was not measured yet."
        return f"It is purged, which frees {size_text(row.unique_bytes)}."

    def forecast(
        self, rows: Sequence[Workspace], told: Mapping[str, Any]
    ) -> Callable[[Workspace], str]:
        return unless_refused(refused_purges(by=self.by, workspaces=rows), self.says)


_AWAY = (
    Column("id", "", "pk", "pk"),
    Column("name", "Name", "name", "name"),
    Column("state", "State", "state", "state"),
    Column("template", "Snapshot", "template.name", "template__name"),
    Column("change", "", "snapshot.change"),
    Column("created_at", "", "created_at"),
)

TRASH = Listing[Workspace](
    name="trash",
    one="workspace",
    many="workspaces",
    columns=(
        *_AWAY,
        Column("purge_at", "Deleted on", "purge_at", "purge_at", has_gaps=True),
        Column(
            *("unique_bytes", "Space", "unique_bytes", "unique_bytes"),
            has_gaps=True,
            is_number=True,
        ),
        Column("actions", "Actions", None, is_label_spoken=True),
    ),
    cells="workspaces/_trash_cells.html",
    reads=READS,
    matching=searched(trashed_workspaces_of, "name", "template__name"),
    usual="purge_at",
    acts=(Restore, Purge),
    quiet_below=10,
    nothing="Nothing is in your trash.",
)

RETIRED_WORKSPACES = Listing[Workspace](
    name="retired-workspaces",
    one="workspace",
    many="workspaces",
    columns=(
        *_AWAY,
        Column("retired_at", "Retired", "retired_at", "retired_at", has_gaps=True),
    ),
    cells="workspaces/_retired_cells.html",
    reads=READS,
    matching=searched(retired_workspaces_of, "name", "template__name"),
    usual="-retired_at",
    quiet_below=10,
    nothing="None of your workspaces has been retired.",
)
