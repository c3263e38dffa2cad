"""Pages of advice on storage for Perforce, and of the support matrix."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from provisioner.advice.forms import AdviceForm
from provisioner.advice.overviews import support_rows
from provisioner.advice.recommending import remarks
from provisioner.advice.reports import known_facts, shown_advice, shown_places
from provisioner.advice.sources import SOURCES
from provisioner.lib import clocks
from provisioner.web.http import WebRequest, administrators_only


@require_safe
@administrators_only
def storage_advice(request: WebRequest) -> HttpResponse:
    """Recommend a protocol for each role, by weights and facts in the address."""
    form = AdviceForm.of(request.GET.dict())
    facts = form.facts()
    advice = shown_advice(form.weights(), facts)
    context = {
        "form": form,
        "advice": advice,
        "remarks": remarks(facts),
        "places": shown_places(advice),
        "known": known_facts(),
        "sources": SOURCES,
    }
    return render(request, "advice/storage.html", context)


@require_safe
@administrators_only
def support_matrix(request: WebRequest) -> HttpResponse:
    """Show which releases in use are known good, too old, or not known."""
    rows = support_rows(today=clocks.database_now().date())
    return render(request, "advice/support.html", {"rows": rows})
