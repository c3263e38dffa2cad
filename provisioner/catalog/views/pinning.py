"""Pinning templates to one's home page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from provisioner.catalog.actions.pinning import template_pin, template_unpin
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest, came_from


@require_POST
def pin(request: WebRequest, pk: int) -> HttpResponse:
    """Pin a template, or with `do` "unpin" remove the pin; then go back."""
    template = get_object_or_404(templates_to_choose_from(request.user), pk=pk)
    do = template_unpin if request.POST.get("do") == "unpin" else template_pin
    try:
        do(by=request.user, template=template)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect(came_from(request))
