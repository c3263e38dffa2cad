"""Pages of bisections: start one, follow it, give verdicts, stop it."""

from __future__ import annotations

from functools import partial

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.bisect import actions
from provisioner.bisect.actions import bisection_start
from provisioner.bisect.forms import BisectionCreateForm
from provisioner.bisect.models import Bisection
from provisioner.bisect.permissions import can_change_bisection
from provisioner.bisect.queries import bisections_visible_to, find_bisection
from provisioner.catalog.queries import templates_visible_to
from provisioner.web.http import WebRequest, digest, posted
from provisioner.web.posting import acted, form_page, require_safe_or_POST


@require_safe_or_POST
def bisection_create(request: WebRequest, template_pk: int) -> HttpResponse:
    """Start a bisection of a template."""
    template = get_object_or_404(templates_visible_to(request.user), pk=template_pk)
    form = BisectionCreateForm(posted(request))
    if bisection := form.tried(bisection_start, by=request.user, template=template):
        return redirect("bisection-detail", bisection.pk)
    return form_page(request, "bisect/create.html", form, template=template)


@require_safe
@vary_on_headers("HX-Request")
def bisection_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a bisection with its steps; htmx gets the changing part."""
    overview = find_bisection(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {"overview": overview}
    if not request.htmx:
        return render(request, "bisect/detail.html", context)
    context["has_changed"] = request.GET.get("said") != digest(overview.announcement)
    return render(request, "bisect/_bisection.html", context)


@require_POST
def bisection_verdict(request: WebRequest, pk: int) -> HttpResponse:
    """Give a verdict on the current change."""
    change = request.POST.get("change", "")
    act = partial(
        actions.bisection_verdict,
        by=request.user,
        bisection=_to_change(request, pk),
        change=int(change) if change.isascii() and change.isdecimal() else 0,
        verdict=request.POST.get("verdict", ""),
    )
    return acted(request, act, "bisection-detail", pk)


@require_POST
def bisection_stop(request: WebRequest, pk: int) -> HttpResponse:
    """Stop a bisection."""
    actions.bisection_stop(by=request.user, bisection=_to_change(request, pk))
    return redirect("bisection-detail", pk)


def _to_change(request: WebRequest, pk: int) -> Bisection:
    """Return a bisection that the person may change; otherwise 404, or the 403 page."""
    bisection = get_object_or_404(bisections_visible_to(request.user), pk=pk)
    if not can_change_bisection(request.user, bisection):
        raise PermissionDenied(
            "You may view this bisection. Only its owner can give verdicts."
        )
    return bisection
