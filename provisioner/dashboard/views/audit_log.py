"""The trail, for those who run the place."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from provisioner.dashboard.lists.audit_log import TRAIL
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer


@require_safe
@administrators_only
def trail(request: WebRequest) -> HttpResponseBase:
    """Show what happened."""
    return list_answer(request, TRAIL, "dashboard/audit_log.html")
