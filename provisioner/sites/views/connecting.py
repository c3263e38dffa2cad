"""Parts that pages of sites and of Perforce servers share: saving and testing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from provisioner.lib.refusals import ActionRefused
from provisioner.sites.events import asks_where_to_go_on
from provisioner.sites.forms import PerforceServerForm, SiteForm
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.queries import (
    ServerOverview,
    SiteOverview,
    own_variable,
)
from provisioner.web.http import WebRequest, digest
from provisioner.web.posting import done, form_page


def saved(
    request: WebRequest,
    form: SiteForm | PerforceServerForm,
    save: Callable[[], Site | PerforceServer],
    *,
    kind: str,
    page: str,
    variable: str,
) -> HttpResponse:
    """Save a form and redirect to what it made, or show the `page` with its errors.

    `kind` is the prefix of its pages' URL names; `variable` holds the password.
    """
    row = form.instance
    if form.is_valid():
        try:
            save()
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            answers = asks_where_to_go_on.send(type(row), user=request.user)
            pages = [(page,) for _, page in answers if page]
            there = pages[0] if pages else (f"{kind}-detail", row.pk)
            return done(request, f"{row.name} is saved.", *there)
    secret_name = own_variable(variable, key=row.name) if row.pk else ""
    return form_page(request, page, form, row=row, secret_name=secret_name)


def is_to_be_tested(request: WebRequest) -> bool:
    """Whether it is to be tested after saving: the form has a button for not."""
    return request.POST.get("do") != "save"


def connection_context(
    overview: SiteOverview | ServerOverview, *, kind: str, pk: int
) -> dict[str, Any]:
    """Return what `sites/_connection.html` shows."""
    return {
        "overview": overview,
        "connection": overview.connection,
        "page_url": reverse(f"{kind}-detail", args=[pk]),
        "test_url": reverse(f"{kind}-test", args=[pk]),
    }


def connection_part(request: WebRequest, context: dict[str, Any]) -> HttpResponse:
    """Return the connection's results only; a screen reader announces changes."""
    connection = context["connection"]
    context["has_changed"] = request.GET.get("said") != digest(connection.announcement)
    return render(request, "sites/_connection.html", context)


def asked(request: WebRequest, context: dict[str, Any]) -> HttpResponse:
    """Show the progress of a requested test, or redirect to the page that does."""
    if request.htmx:
        return connection_part(request, context)
    if "from_setup" in request.POST:
        return redirect("setup")
    return redirect(context["page_url"])
