"""The context of steps about templates and their clones."""

from __future__ import annotations

from provisioner.catalog.models import Template
from provisioner.engine.step_run import StepRun
from provisioner.sites.models import Site


class TemplateRun(StepRun):
    """One attempt at one step of a template's build."""

    site: Site

    @property
    def template(self) -> Template:
        return self.operation.subject.template
