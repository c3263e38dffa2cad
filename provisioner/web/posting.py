"""Answers to what is posted: act, say what was done, and lead on."""

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


def done(request: HttpRequest, sentence: str, *address: Any) -> HttpResponse:
    """Say what was done on the page of an address, as `redirect` takes it."""
    messages.success(request, sentence)
    return redirect(*address)


def acted(
    request: HttpRequest, act: Callable[[], object], *address: Any, said: str = ""
) -> HttpResponse:
    """Act, and lead to an address. That page says what was done, or why it was not."""
    try:
        act()
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect(*address)
    return done(request, said, *address) if said else redirect(*address)


def form_page(
    request: HttpRequest, page: str, form: Refusable, **context: Any
) -> HttpResponse:
    """Return a page with a form, empty or with what is wrong with it."""
    return render(request, page, {"form": form, **context}, status=form.http_code)
