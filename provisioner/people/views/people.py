"""Pages of people and teams, for administrators."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import tokens_of
from provisioner.dashboard.lists.workspaces import workspaces_of_person
from provisioner.lib.refusals import ActionRefused
from provisioner.people.actions import accounts, passwords
from provisioner.people.actions.accounts import account_update, team_update
from provisioner.people.forms.people import (
    AccountForm,
    GivenPasswordForm,
    NewAccountForm,
    QuotaForm,
    TeamForm,
)
from provisioner.people.lists.people import PEOPLE, TEAMS
from provisioner.people.lists.tokens import shown_tokens
from provisioner.people.queries import Standing, find_person, standing_of
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_list(request: WebRequest) -> HttpResponseBase:
    """Show all accounts with usage; set team, role or quota of several."""
    return list_answer(request, PEOPLE, "people/list.html")


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_detail(request: WebRequest, pk: int) -> HttpResponseBase:
    """Show an account with its workspaces, tokens and recent activity."""
    person = find_person(request.user, pk=pk)
    if person is None:
        raise Http404
    return list_answer(
        request,
        workspaces_of_person(person.account),
        "people/detail.html",
        {
            "person": person,
            "tokens": shown_tokens(person.tokens),
            "actions": _actions(person.account, by=request.user),
        },
    )


def _actions(account: User, *, by: User) -> list[Action]:
    """Return what an administrator can do with an account. Nobody closes their own."""

    def url(name: str) -> str:
        return reverse(f"person-{name}", args=[account.pk])

    actions = [
        Action(label="Edit", url=url("edit")),
        Action(label="Set password", url=url("password")),
    ]
    if not account.is_active:
        actions.append(Action(label="Reopen", url=url("reopen"), is_post=True))
    elif account != by:
        close = Action(label="Close…", url=url("close"), look="quiet-danger")
        actions.append(close)
    return actions


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change an account's team, quota and role."""
    account = get_object_or_404(User.objects.select_related("team"), pk=pk)
    initial = {
        "standing": standing_of(account),
        "team": account.team_id,
        **{name: getattr(account, name) for name in accounts.IDENTITY},
        **QuotaForm.initial_of(account),
    }
    form = AccountForm(posted(request), initial=initial)
    if form.is_valid():
        try:
            account_update(by=request.user, account=account, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, "Saved.")
            return redirect("person-detail", pk)
    return render(
        request,
        "people/edit.html",
        {"form": form, "account": account},
        status=form.http_code,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_create(request: WebRequest) -> HttpResponse:
    """Create an account."""
    form = NewAccountForm(posted(request), initial={"standing": Standing.DEVELOPER})
    if form.is_valid():
        given = dict(form.cleaned_data)
        sends_mail = given.pop("sends_mail")
        try:
            with transaction.atomic():
                account = accounts.account_create(by=request.user, **given)
                if sends_mail:
                    passwords.password_mail_to(by=request.user, account=account)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"Made the account {account}.")
            return redirect("person-detail", account.pk)
    context = {"form": form, "mails_are_sent": mails_are_sent()}
    return render(request, "people/create.html", context, status=form.http_code)


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_password(request: WebRequest, pk: int) -> HttpResponse:
    """Set somebody's password, or mail them a link to choose one."""
    account = get_object_or_404(User, pk=pk)
    is_mail = "mail" in request.POST
    form = GivenPasswordForm(None if is_mail else posted(request))
    try:
        if is_mail:
            passwords.password_mail_to(by=request.user, account=account)
            messages.success(request, f"A mail is on its way to {account.email}.")
            return redirect("person-detail", pk)
        if form.is_valid():
            number = passwords.account_set_password(
                by=request.user, account=account, **form.cleaned_data
            )
            said = f"{account} has a new password; their sessions have ended."
            messages.success(request, f"{said} Tokens revoked: {number}.")
            return redirect("person-detail", pk)
    except ActionRefused as refusal:
        if not form.is_bound:
            messages.error(request, refusal.sentence)
            return redirect("person-password", pk)
        form.refuse(refusal)
    context = {
        "form": form,
        "account": account,
        "tokens": tokens_of(account).count(),
        "can_mail": mails_are_sent() and account.email and account.is_active,
    }
    return render(request, "people/password.html", context, status=form.http_code)


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def person_close(request: WebRequest, pk: int) -> HttpResponse:
    """Confirm, then close an account."""
    person = find_person(request.user, pk=pk)
    if person is None:
        raise Http404
    if request.method != "POST":
        return render(request, "people/close.html", {"person": person})
    return _done(
        request, accounts.account_close, person.account, "The account is closed."
    )


@require_POST
@administrators_only
def person_reopen(request: WebRequest, pk: int) -> HttpResponse:
    """Reopen an account."""
    account = get_object_or_404(User, pk=pk)
    return _done(request, accounts.account_reopen, account, "The account is open.")


def _done(
    request: WebRequest, action: Callable[..., None], account: User, said: str
) -> HttpResponse:
    try:
        action(by=request.user, account=account)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        messages.success(request, said)
    return redirect("person-detail", account.pk)


@require_safe
@administrators_only
def team_list(request: WebRequest) -> HttpResponseBase:
    """Show all teams with quotas and usage."""
    return list_answer(request, TEAMS, "people/teams.html")


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def team_create(request: WebRequest) -> HttpResponse:
    """Create a team."""
    form = TeamForm(posted(request))
    if form.is_valid():
        try:
            team = accounts.team_create(by=request.user, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"Made the team {team}. Put people into it.")
            return redirect("person-list")
    return render(request, "people/team.html", {"form": form}, status=form.http_code)


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def team_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a team's name and quota."""
    team = get_object_or_404(Team, pk=pk)
    initial = {"name": team.name, **QuotaForm.initial_of(team)}
    form = TeamForm(posted(request), initial=initial)
    if form.is_valid():
        try:
            team_update(by=request.user, team=team, **form.cleaned_data)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, "Saved.")
            return redirect("team-list")
    return render(
        request, "people/team.html", {"form": form, "team": team}, status=form.http_code
    )
