"""The documentation as pages."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from provisioner.help import documents
from provisioner.web.http import WebRequest

LONGEST_TEXT = 100


@require_safe
def help_index(request: WebRequest) -> HttpResponse:
    """Show the table of contents, or search results."""
    text = request.GET.get("q", "")[:LONGEST_TEXT].strip()
    context = {
        "text": text,
        "found": documents.search(text),
        "groups": documents.contents(),
    }
    return render(request, "help/index.html", context)


@require_safe
def help_page(request: WebRequest, name: str) -> HttpResponse:
    """Show a document."""
    document = documents.documents().get(name)
    if document is None:
        raise Http404
    return render(request, "help/page.html", {"document": document})
