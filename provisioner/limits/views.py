"""The page of limits, for administrators."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from provisioner.limits.queries import limits_overview
from provisioner.web.http import WebRequest, administrators_only


@require_safe
@administrators_only
def limit_list(request: WebRequest) -> HttpResponse:
    """Show every limit and how near it is."""
    overview = limits_overview(request.user)
    return render(request, "limits/list.html", {"overview": overview})
