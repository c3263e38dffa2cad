"""Queries of findings."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.drift.models import Finding


def findings_visible_to(user: User) -> QuerySet[Finding]:
    """Return all findings; none to anybody but administrators."""
    findings = Finding.objects.select_related(
        "site", "workspace", "template", "resolved_by"
    )
    return findings if user.is_administrator else findings.none()


def open_findings_number() -> int:
    """Return how many differences wait for an administrator."""
    return Finding.objects.filter(resolved_at=None).count()
