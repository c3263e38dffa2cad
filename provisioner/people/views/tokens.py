"""Pages of API tokens: my own, and for administrators everybody's."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
)

from provisioner.accounts.tokens import tokens_visible_to
from provisioner.dashboard.views.command_line import commands_to_get_it
from provisioner.lib.refusals import ActionRefused
from provisioner.people.actions.tokens import api_token_create, api_token_revoke
from provisioner.people.forms.tokens import TokenForm
from provisioner.people.lists import tokens as lists
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.lists.listing import Look


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def token_list(request: WebRequest) -> HttpResponseBase:
    """Show my tokens, or create one; only that answer shows its secret."""
    is_about_many = "do" in request.POST
    form = TokenForm(None if is_about_many else posted(request), user=request.user)
    context = {"form": form, "commands": commands_to_get_it(request)}
    if request.method != "POST" or is_about_many:
        return list_answer(request, lists.TOKENS, "people/tokens.html", context)
    secret = ""
    if form.is_valid():
        try:
            _, secret = api_token_create(by=request.user, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            context["form"] = TokenForm(user=request.user)
    return render(
        request,
        "people/tokens.html",
        {**context, "secret": secret, "listing": Look(lists.TOKENS, request)},
        status=form.http_code,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def token_everybody_list(request: WebRequest) -> HttpResponseBase:
    """List all active tokens; revoke in bulk."""
    return list_answer(request, lists.EVERYBODYS_TOKENS, "people/tokens_everybody.html")


@require_POST
def token_revoke(request: WebRequest, prefix: str) -> HttpResponse:
    """Revoke a token."""
    tokens = tokens_visible_to(request.user)
    token = get_object_or_404(tokens, token_key=prefix)
    api_token_revoke(by=request.user, token=token)
    messages.success(request, f"The token {token} opens nothing any more.")
    is_mine = token.user_id == request.user.pk
    return redirect("token-list" if is_mine else "token-everybody-list")
