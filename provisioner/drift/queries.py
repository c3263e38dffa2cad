"""Queries of findings."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.drift.models import Finding


def findings_visible_to(user: User) -> QuerySet[Finding]:
    """Return all findings for administrators, none for others."""
    findings = Finding.objects.select_related(
        "site", "workspace", "template", "mirror", "resolved_by"
    )
    return findings if user.is_administrator else findings.none()


def open_findings_number() -> int:
    """Return how many findings are open."""
    return Finding.objects.filter(resolved_at=None).count()
