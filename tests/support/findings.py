"""Findings about workspaces, without a drift check."""

from __future__ import annotations

from django.utils import timezone

from provisioner.drift.models import Finding
from provisioner.workspaces.models import Workspace


def finding_about(workspace: Workspace, **fields: object) -> Finding:
    now = timezone.now()
    values: dict[str, object] = {
        "site": workspace.site,
        "kind": Finding.Kind.VOLUME_WITHOUT_ROW,
        "subject": "cy_<i>old</i>",
        "sentence": "It is left over.",
        "details": {"junction_path": "/old", "owner": "<b>x</b>"},
        "action": Finding.Action.REMOVE,
        "workspace": workspace,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    return Finding.objects.create(**values | fields)
