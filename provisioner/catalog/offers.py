"""A template on offer, as its reader sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog.freshness import Freshness
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.obstacles import Obstacle
from provisioner.sites.models import Site
from provisioner.web.notices import Action


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A template with what people want to know before they request a workspace.

    `template` is annotated by `templates_offered_to`; `default` is the snapshot that
    new workspaces get, at `site` if that is another than the template's. `coming` says
    what is on its way to where its reader works, "" for nothing.
    """

    template: Template
    user: User
    default: Snapshot | None
    site: Site | None
    coming: str
    freshness: Freshness | None
    usual_seconds: float | None
    obstacle: Obstacle | None

    @property
    def is_ready(self) -> bool:
        return self.template.state == Template.State.READY

    @cached_property
    def why_none(self) -> str:
        """Why new workspaces have no default snapshot, "" if there is one."""
        if self.default is not None:
            return ""
        if vars(self.template)["has_snapshots"]:
            return f"No snapshot is {self.template.wanted_quality}"
        return "Nothing published yet"

    @cached_property
    def request_url(self) -> str:
        """Where a workspace is requested: by a click, or with options."""
        return reverse("workspace-create", args=[self.template.pk])

    @cached_property
    def is_requestable(self) -> bool:
        """Whether one click requests a workspace, unless its obstacle refuses it."""
        has_uid = self.user.uid is not None
        return has_uid and not self.template.is_archived and not self.why_none

    @property
    def actions(self) -> list[Action]:
        """The links beside the button that requests a workspace, or instead of it."""
        template, options = self.template, self.request_url
        if self.is_requestable:
            about = f" for {template.name}"
            return [Action(label="With options", url=options, look="link", about=about)]
        can_choose = vars(template)["has_snapshots"] and self.user.uid is not None
        if can_choose and not template.is_archived:
            about = f" of {template.name}"
            return [Action(label="Choose a snapshot", url=options, about=about)]
        if template.is_archived or self.user.is_administrator:
            page = reverse("template-detail", args=[template.pk])
            return [Action(label="Show it", url=page, about=f" ({template.heading})")]
        return []
