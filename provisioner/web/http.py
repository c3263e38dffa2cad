"""The request as views see it, and helpers that all views share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    QueryDict,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib.places import place_for_download

P = ParamSpec("P")


class WebRequest(HttpRequest):
    """A request of a signed-in user."""

    user: User  # LoginRequiredMiddleware saw to it
    htmx: HtmxDetails


View = Callable[Concatenate[WebRequest, P], HttpResponseBase]


def administrators_only(view: View[P]) -> View[P]:
    """Answer with the 403 page to everybody else."""

    @wraps(view)
    def guarded(
        request: WebRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if not permissions.can_administer(request.user):
            raise PermissionDenied("This page is for administrators.")
        return view(request, *args, **kwargs)

    return guarded


def posted(request: HttpRequest) -> QueryDict | None:
    """Return the posted data, which may be empty, or None if nothing was posted."""
    return request.POST if request.method == "POST" else None


def came_from(request: HttpRequest) -> str:
    """Return the page from which a form was sent if it is ours, else the home page."""
    back = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        back, request.get_host(), require_https=request.is_secure()
    )
    return back if is_ours else str(settings.LOGIN_REDIRECT_URL)


def digest(text: str) -> str:
    """Return a short digest of a text, to detect that a page has changed."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Announced(Protocol):
    """What is under way, and how far it is, for screen readers."""

    @property
    def announcement(self) -> str: ...


def polled(request: WebRequest, page: str, progress: Announced | None) -> HttpResponse:
    """Give htmx the progress that it polls; the whole page once there is none."""
    if progress is None:
        return HttpResponseClientRefresh()
    has_changed = request.GET.get("said") != digest(progress.announcement)
    context = {"poll": request.path, "progress": progress, "has_changed": has_changed}
    return render(request, page, context)


class HeldAnswer(StreamingHttpResponse):
    """A download that keeps its place, or other resources, until it is closed."""

    def __init__(self, *args: Any, held: ExitStack, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held = held

    def close(self) -> None:
        self._held.close()
        super().close()


class HeldFile(HeldAnswer, FileResponse):
    """A file that is sent like that."""


def csv_answer(name: str, lines: Iterable[str], *, to: User) -> StreamingHttpResponse:
    """Return a CSV download that is streamed line by line.

    Raises: TooManyDownloads.
    """
    file_name = f"cloneyard-{name}-{timezone.now():%Y%m%d-%H%M%S}.csv"
    return HeldAnswer(
        lines,
        held=place_for_download(to.pk),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )
