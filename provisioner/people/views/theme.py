"""Light or dark: each browser keeps what was chosen in it, and pages arrive so."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from provisioner.web.http import came_from

COOKIE = "theme"
THEMES = ("light", "dark")
KEPT_SECONDS = 365 * 24 * 3600


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme of this browser, or follow the system again; then lead back."""
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
