"""Pages of API tokens: my own, and for administrators everybody's."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from provisioner.accounts.tokens import tokens_visible_to
from provisioner.dashboard.views.command_line import commands_to_get_it
from provisioner.people import lists
from provisioner.people.actions.tokens import api_token_create, api_token_revoke
from provisioner.people.forms.tokens import TokenForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.lists.listing import Look
from provisioner.web.posting import done, form_page, require_safe_or_POST


@never_cache
@require_safe_or_POST
def token_list(request: WebRequest) -> HttpResponseBase:
    """Show my tokens, or create one; only that answer shows its secret."""
    is_about_many = "do" in request.POST
    form = TokenForm(None if is_about_many else posted(request), user=request.user)
    context: dict[str, Any] = {"commands": commands_to_get_it(request)}
    if request.method != "POST" or is_about_many:
        context["form"] = form
        return list_answer(request, lists.TOKENS, "people/tokens.html", context)
    context["listing"] = Look(lists.TOKENS, request)
    if made := form.tried(api_token_create, by=request.user):
        _, context["secret"] = made
        form = TokenForm(user=request.user)
    return form_page(request, "people/tokens.html", form, **context)


@require_POST
def token_revoke(request: WebRequest, prefix: str) -> HttpResponse:
    """Revoke a token."""
    tokens = tokens_visible_to(request.user)
    token = get_object_or_404(tokens, token_key=prefix)
    api_token_revoke(by=request.user, token=token)
    is_mine = token.user_id == request.user.pk
    said = f"The token {token} is no longer valid."
    return done(request, said, "token-list" if is_mine else "token-everybody-list")
