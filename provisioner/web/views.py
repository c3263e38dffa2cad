"""Save columns and views of any list."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from provisioner.lib.refusals import ActionRefused
from provisioner.web.actions import columns_choose, view_delete, view_save
from provisioner.web.forms import ViewForm
from provisioner.web.http import WebRequest
from provisioner.web.posting import acted, done


@require_POST
def my_list_columns(request: WebRequest) -> HttpResponse:
    """Save which columns of a list somebody wants to see."""
    there = _list_address(request.POST)
    act = partial(
        columns_choose,
        by=request.user,
        listing=request.POST.get("listing", ""),
        path=there.partition("?")[0],
        hidden=_hidden(request.POST),
    )
    return acted(request, act, there)


@require_POST
def my_view_save(request: WebRequest) -> HttpResponse:
    """Save the current view of a list; ask again if its name is invalid."""
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
            said = f"Saved the view “{view}”. You can share its address."
            return done(request, said, f"{path}?view={view.pk}")
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
    """Delete a saved view; its list stays."""
    view = view_delete(by=request.user, pk=pk)
    if view is None:
        messages.warning(request, "That view no longer exists.")
        return redirect("my-account")
    return done(request, f"Deleted the view “{view}”.", _safe(view.path))


def _hidden(posted: QueryDict) -> set[str]:
    """Return the unticked columns, of those that the page showed."""
    return {*posted.getlist("column")} - {*posted.getlist("shown")}


def _list_address(posted: QueryDict) -> str:
    return _safe(posted.get("there", ""))


def _safe(address: str) -> str:
    """Return the URL if it is ours, else that of the home page."""
    is_ours = address.startswith("/") and url_has_allowed_host_and_scheme(
        address, allowed_hosts=None
    )
    return address if is_ours else "/"
