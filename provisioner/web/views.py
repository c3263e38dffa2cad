"""Columns and saved views of every list."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from provisioner.lib.refusals import ActionRefused
from provisioner.web.actions import columns_choose, view_delete, view_save
from provisioner.web.forms import ViewForm
from provisioner.web.http import WebRequest


@require_POST
def my_list_columns(request: WebRequest) -> HttpResponse:
    """Keep the columns that somebody wants to see of a list."""
    there = _list_address(request.POST)
    try:
        columns_choose(
            by=request.user,
            listing=request.POST.get("listing", ""),
            path=there.partition("?")[0],
            hidden=_hidden(request.POST),
        )
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect(there)


@require_POST
def my_view_save(request: WebRequest) -> HttpResponse:
    """Keep a list as it is looked at; ask again where the name cannot be."""
    there = _list_address(request.POST)
    form = ViewForm(request.POST)
    if form.is_valid():
        path, _, query = there.partition("?")
        kept = QueryDict(query, mutable=True)
        for passing in ("page", "choose", "as", "view"):
            kept.pop(passing, None)
        try:
            view = view_save(
                by=request.user,
                listing=request.POST.get("listing", ""),
                path=path,
                query=kept.urlencode(),
                hidden=_hidden(request.POST),
                name=form.cleaned_data["name"],
            )
        except ActionRefused as refusal:
            form.add_error("name", refusal.sentence)
        else:
            messages.success(request, f"Saved the view “{view}”. Its address is yours.")
            return redirect(f"{path}?view={view.pk}")
    context = {
        "form": form,
        "posted": request.POST,
        "there": there,
        "columns": request.POST.getlist("column"),
        "shown": request.POST.getlist("shown"),
    }
    return render(request, "web/view_save.html", context, status=422)


@require_POST
def my_view_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Forget a saved view; its list stays."""
    view = view_delete(by=request.user, pk=pk)
    if view is None:
        messages.warning(request, "That view no longer exists.")
        return redirect("my-account")
    messages.success(request, f"Deleted the view “{view}”.")
    return redirect(_safe(view.path))


def _hidden(posted: QueryDict) -> set[str]:
    """Return the columns without a tick among those that the page had."""
    return {*posted.getlist("column")} - {*posted.getlist("shown")}


def _list_address(posted: QueryDict) -> str:
    return _safe(posted.get("there", ""))


def _safe(address: str) -> str:
    """Return an address of ours, or that of the first page."""
    is_ours = address.startswith("/") and url_has_allowed_host_and_scheme(
        address, allowed_hosts=None
    )
    return address if is_ours else "/"
