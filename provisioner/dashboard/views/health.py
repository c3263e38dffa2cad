"""Probes: whether the process is alive, and whether it could do its work."""

from __future__ import annotations

import dataclasses

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from provisioner.dashboard.health import readiness_here, shared_readiness


@require_safe
@never_cache
@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer that the process is alive, without any check."""
    return JsonResponse({"alive": True})


@require_safe
@never_cache
@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Report each part's health; 503 if one is unhealthy or unknown.

    With `?here`, only of what this web server itself needs.
    """
    found = readiness_here() if "here" in request.GET else shared_readiness()
    if found is None:
        return JsonResponse(
            {"ready": False, "checks": []}, status=503, headers={"Retry-After": "1"}
        )
    return JsonResponse(
        {
            "ready": found.ready,
            "checks": [dataclasses.asdict(check) for check in found.checks],
        },
        status=200 if found.ready else 503,
    )
