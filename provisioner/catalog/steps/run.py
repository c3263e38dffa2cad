"""What steps about templates, and about what is cloned from them, are given."""

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
