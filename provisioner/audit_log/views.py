"""The audit log, for administrators."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from provisioner.audit_log.lists import AUDIT_LOG
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer


@require_safe
@administrators_only
def audit_log(request: WebRequest) -> HttpResponseBase:
    """Show the events that match."""
    return list_answer(request, AUDIT_LOG, "audit_log/list.html")
