"""Dark, light or system: the browser keeps the choice, and pages follow it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from provisioner.web.http import came_from
from provisioner.web.themes import COOKIE, THEMES

KEPT_SECONDS = 365 * 24 * 3600


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Save the theme in this browser, then go back."""
    answer = redirect(came_from(request))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        answer.set_cookie(
            COOKIE,
            chosen,
            max_age=KEPT_SECONDS,
            samesite="Lax",
            httponly=True,
            secure=settings.SESSION_COOKIE_SECURE,
        )
    else:
        answer.delete_cookie(COOKIE, samesite="Lax")
    return answer
