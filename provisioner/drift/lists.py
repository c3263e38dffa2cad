"""The list of findings."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.drift.actions import finding_resolve
from provisioner.drift.comparison.previews import preview
from provisioner.drift.forms import FindingFilterForm
from provisioner.drift.models import Finding
from provisioner.drift.queries import findings_visible_to
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


class Resolve(Act[Finding]):
    name, label, done = "resolve", "Resolve", "Requested"
    lead = "Each is checked again first. Nothing is done if the difference is gone."
    is_dangerous = True

    def do(self, row: Finding, **told: Any) -> Finding:
        return finding_resolve(by=self.by, finding=row)

    def says(self, row: Finding, result: Finding) -> str:
        if row.asked_at is not None:
            return "It was requested already."
        return " ".join([f"{row.action_title}.", *preview(row)[1:]])


_searched = searched(findings_visible_to, "subject", "sentence", "site__name")


def _matching(user: User, *, state: str = "", **criteria: Any) -> QuerySet[Finding]:
    """Return open findings, or resolved ones."""
    is_open = state != "resolved"
    return _searched(user, **criteria).filter(resolved_at__isnull=is_open)


FINDINGS = Listing[Finding](
    name="findings",
    one="finding",
    many="findings",
    columns=(
        Column("id", "", "pk", "pk"),
        Column("kind", "What", "kind", "kind"),
        Column("subject", "", "subject", "subject"),
        Column("sentence", "Why it matters", "sentence"),
        Column("site", "Site", "site.name", "site__name", is_unbroken=True),
        Column(
            *("first_seen_at", "Seen", "first_seen_at", "first_seen_at"),
            is_unbroken=True,
            begins_descending=True,
        ),
        Column("last_seen_at", "", "last_seen_at", "last_seen_at"),
        Column("action", "What to do", "action", "action", is_unbroken=True),
        Column("asked_at", "", "asked_at"),
        Column("status_message", "", "status_message"),
        Column("resolved_at", "", "resolved_at", "resolved_at", has_gaps=True),
        Column("resolution", "", "resolution"),
    ),
    cells="drift/_cells.html",
    matching=_matching,
    usual="-first_seen_at",
    form=FindingFilterForm,
    acts=(Resolve,),
    nothing="No finding is open.",
)
