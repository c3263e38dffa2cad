"""The list of lease policies of single templates."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.leases.actions.policies import PolicyPreview, lease_policy_remove
from provisioner.leases.models import LeasePolicy
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


class Remove(Act[LeasePolicy]):
    name, label, done = "remove", "Remove", "Removed"
    lead = "The general policy of the purpose then applies to the template."
    is_dangerous = True

    def do(self, row: LeasePolicy, **told: Any) -> PolicyPreview:
        return lease_policy_remove(by=self.by, row=row)

    def says(self, row: LeasePolicy, result: PolicyPreview) -> str:
        if not result.affected:
            return "No workspace is affected."
        number = len(result.affected)
        affected = "workspace is" if number == 1 else "workspaces are"
        return f"{number} {affected} affected, {result.moving} deadlines move."


def _of_templates(user: User) -> QuerySet[LeasePolicy]:
    return LeasePolicy.objects.filter(template__isnull=False).select_related("template")


TEMPLATE_POLICIES = Listing[LeasePolicy](
    name="lease-policies",
    one="policy",
    many="policies",
    columns=(
        Column("template", "Template", "template.name", "template__name"),
        Column("purpose", "Purpose", "purpose", "purpose"),
        Column(
            *("default_seconds", "Lease", "default_seconds", "default_seconds"),
            has_gaps=True,
        ),
        Column(
            *("maximum_seconds", "Longest", "maximum_seconds", "maximum_seconds"),
            has_gaps=True,
        ),
        Column(
            *("warn_seconds", "Mails before"),
            lambda row: " ".join(map(str, row.warn_seconds)),
        ),
        Column("trash_seconds", "Trash", "trash_seconds", "trash_seconds"),
        Column("actions", "Actions", None, is_label_spoken=True),
    ),
    cells="leases/_template_policy_cells.html",
    matching=searched(_of_templates, "template__name", "purpose"),
    usual="template",
    acts=(Remove,),
    quiet_below=10,
    nothing="No template has a policy of its own.",
)
