"""API tokens: mine, and for administrators everybody's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from provisioner.accounts.models import ApiToken
from provisioner.accounts.tokens import live_tokens, tokens_of, tokens_visible_to
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.token_forms import TokenForm
from provisioner.web.views.command_line import commands_to_get_it
from provisioner.workspaces import actions
from provisioner.workspaces.errors import ActionRefused
from provisioner.workspaces.models import Template


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def token_list(request: WebRequest) -> HttpResponse:
    """Show my tokens, and make one: the answer to that shows its secret, once."""
    form, secret = TokenForm(posted(request), user=request.user), ""
    if form.is_valid():
        try:
            _, secret = actions.api_token_create(by=request.user, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            form = TokenForm(user=request.user)
    return render(
        request,
        "accounts/tokens.html",
        {
            "form": form,
            "secret": secret,
            "tokens": with_templates(tokens_of(request.user)),
            "commands": commands_to_get_it(request),
        },
        status=form.http_code,
    )


@require_safe
@administrators_only
def token_everybody_list(request: WebRequest) -> HttpResponse:
    """Show all tokens that open the door."""
    shown = with_templates(live_tokens().order_by("user__username", "-created"))
    return render(request, "accounts/tokens_everybody.html", {"tokens": shown})


@require_POST
def token_revoke(request: WebRequest, prefix: str) -> HttpResponse:
    """Make a token worthless at once."""
    tokens = tokens_visible_to(request.user)
    token = get_object_or_404(tokens, token_key=prefix)
    actions.api_token_revoke(by=request.user, token=token)
    messages.success(request, f"The token {token} opens nothing any more.")
    is_mine = token.user_id == request.user.pk
    return redirect("token-list" if is_mine else "token-everybody-list")


def with_templates(tokens: Iterable[ApiToken]) -> list[dict[str, Any]]:
    """Return each token with the names of its templates."""
    tokens = list(tokens)
    wanted = {pk for token in tokens for pk in token.template_ids or ()}
    names = dict(Template.objects.filter(pk__in=wanted).values_list("pk", "name"))
    return [
        {
            "token": token,
            "templates": [names[pk] for pk in token.template_ids or () if pk in names],
        }
        for token in tokens
    ]
