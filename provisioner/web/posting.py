"""Answers to posted forms: act, report the result, and redirect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from provisioner.lib.refusals import ActionRefused
from provisioner.web.forms import Refusable

require_safe_or_POST = require_http_methods(["GET", "HEAD", "POST"])


def done(request: HttpRequest, sentence: str, *to: Any) -> HttpResponse:
    """Redirect, and report there what was done. `to` is what `redirect` takes."""
    messages.success(request, sentence)
    return redirect(*to)


def acted(
    request: HttpRequest, act: Callable[[], object], *to: Any, said: str = ""
) -> HttpResponse:
    """Act and redirect, and report there what was done, or why it was refused."""
    try:
        act()
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect(*to)
    return done(request, said, *to) if said else redirect(*to)


def form_page(
    request: HttpRequest, page: str, form: Refusable, **context: Any
) -> HttpResponse:
    """Return a page with a form and its errors, with the HTTP status for these."""
    return render(request, page, {"form": form, **context}, status=form.http_code)
