"""Finding what an audit found."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.drift.models import Finding
from provisioner.lib.rows import with_words


def findings_matching(
    user: User, *, text: str = "", kind: str = "", is_resolved: bool = False
) -> QuerySet[Finding]:
    """Return what audits found that is open, or resolved; nothing to who administers
    nothing."""
    findings = Finding.objects.select_related(
        "site", "workspace", "template", "resolved_by"
    ).filter(resolved_at__isnull=not is_resolved)
    if not user.is_administrator:
        return findings.none()
    found = with_words(findings, text, "subject", "sentence", "site__name")
    return found.filter(kind=kind) if kind else found
