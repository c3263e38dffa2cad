"""The context of steps about workspaces."""

from __future__ import annotations

from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Step
from provisioner.workspaces.models import Workspace


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
    def template(self) -> Template:
        return self.workspace.template
