"""Pages of maintenance, for administrators."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from provisioner.maintenance import actions
from provisioner.maintenance.forms import MaintenanceForm
from provisioner.maintenance.queries import announced
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.posting import done, form_page, require_safe_or_POST


@require_safe_or_POST
@administrators_only
def maintenance_list(request: WebRequest) -> HttpResponse:
    """List announced maintenance, and announce more."""
    form = MaintenanceForm(posted(request))
    if form.tried(actions.maintenance_announce, by=request.user):
        said = "Announced. Every page shows it until it ends."
        return done(request, said, "maintenance-list")
    context = {"announced": announced().select_related("announced_by")}
    return form_page(request, "maintenance/list.html", form, **context)


@require_POST
@administrators_only
def maintenance_withdraw(request: WebRequest, pk: int) -> HttpResponse:
    """Withdraw an announcement."""
    maintenance = get_object_or_404(announced(), pk=pk)
    actions.maintenance_withdraw(by=request.user, maintenance=maintenance)
    return done(request, "Withdrawn.", "maintenance-list")
