"""Pages of maintenance, for administrators."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from provisioner.lib.refusals import ActionRefused
from provisioner.maintenance import actions
from provisioner.maintenance.forms import MaintenanceForm
from provisioner.maintenance.queries import announced
from provisioner.web.http import WebRequest, administrators_only, posted


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def maintenance_list(request: WebRequest) -> HttpResponse:
    """List announced maintenance, and announce more."""
    form = MaintenanceForm(posted(request))
    if form.is_valid():
        try:
            actions.maintenance_announce(by=request.user, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, "Announced. Every page shows it until it ends.")
            return redirect("maintenance-list")
    context = {"form": form, "announced": announced().select_related("announced_by")}
    return render(request, "maintenance/list.html", context, status=form.http_code)


@require_POST
@administrators_only
def maintenance_withdraw(request: WebRequest, pk: int) -> HttpResponse:
    """Withdraw an announcement."""
    maintenance = get_object_or_404(announced(), pk=pk)
    actions.maintenance_withdraw(by=request.user, maintenance=maintenance)
    messages.success(request, "Withdrawn.")
    return redirect("maintenance-list")
