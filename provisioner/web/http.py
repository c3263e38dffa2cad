"""The request as views see it, and what all of them share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django_htmx.middleware import HtmxDetails

from provisioner.accounts import permissions
from provisioner.accounts.models import User

P = ParamSpec("P")


class WebRequest(HttpRequest):
    """A request of somebody who has signed in."""

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
    """Return what was posted, which may be nothing at all; None for a mere look."""
    return request.POST if request.method == "POST" else None


def digest(text: str) -> str:
    """Return a short name of a text, to tell whether a page has shown it already."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def csv_answer(name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    """Return a table as a file to download, line by line as it is read."""
    file_name = f"cloneyard-{name}-{timezone.now():%Y%m%d-%H%M%S}.csv"
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )
