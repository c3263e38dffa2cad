"""The context of steps about workspaces, and the free space of a clone."""

from __future__ import annotations

from provisioner.catalog.models import Template
from provisioner.catalog.steps.room import Room
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Step
from provisioner.gateways.hosts.room import Lack
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace

_ADVICE = {
    Lack.INODES: "Its limit is raised within minutes, up to one per 4 KB. Retry "
    "then, or delete unneeded files.",
    Lack.BYTES: "Delete files that nobody needs, or ask an administrator to grow it. "
    "Then retry.",
}


class WorkspaceRun(TemplateRun):
    """One attempt at one step about a workspace."""

    def __init__(self, step: Step, *, about: Workspace | None = None) -> None:
        super().__init__(step)
        self._about = about

    def at(self, workspace: Workspace) -> WorkspaceRun:
        """Return the same attempt for another workspace of the site."""
        return WorkspaceRun(self.step, about=workspace)

    @property
    def workspace(self) -> Workspace:
        return self._about or self.operation.subject.workspace

    @property
    def server(self) -> PerforceServer:
        return self.workspace.perforce_server

    @property
    def template(self) -> Template:
        return self.workspace.template


def room_of(run: WorkspaceRun) -> Room:
    """Return the free space of the workspace's clone."""
    workspace = run.workspace
    return Room(
        volume_name=workspace.volume_name,
        root=lambda: run.visible_root(workspace.junction_path),
        volume=lambda: run.ontap.find_volume(workspace.volume_name),
        aggregate=run.ontap.get_aggregate,
        advice=_ADVICE,
    )
