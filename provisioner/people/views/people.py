"""Pages of people and teams, for administrators."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import tokens_of
from provisioner.dashboard.lists import workspaces_of_person
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
from provisioner.people.lists import shown_sessions, shown_tokens
from provisioner.people.queries import Standing, find_person, standing_of
from provisioner.sites.actions.home_sites import team_home_site_choose
from provisioner.sites.models import HomeSite, Site
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe_or_POST
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
            "provider": settings.OIDC_NAME,
            "tokens": shown_tokens(person.tokens),
            "sessions": shown_sessions(person.sessions),
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


@require_safe_or_POST
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
    if form.tried(account_update, by=request.user, account=account):
        return done(request, "Saved.", "person-detail", pk)
    return form_page(request, "people/edit.html", form, account=account)


@require_safe_or_POST
@administrators_only
def person_create(request: WebRequest) -> HttpResponse:
    """Create an account."""
    form = NewAccountForm(posted(request), initial={"standing": Standing.DEVELOPER})
    if account := form.tried(_account_created, by=request.user):
        said = f"Made the account {account}."
        return done(request, said, "person-detail", account.pk)
    context = {"mails_are_sent": mails_are_sent()}
    return form_page(request, "people/create.html", form, **context)


@transaction.atomic
def _account_created(*, by: User, sends_mail: bool, **given: Any) -> User:
    account = accounts.account_create(by=by, **given)
    if sends_mail:
        passwords.password_mail_to(by=by, account=account)
    return account


@require_safe_or_POST
@administrators_only
def person_password(request: WebRequest, pk: int) -> HttpResponse:
    """Set somebody's password, or mail them a link to choose one."""
    account = get_object_or_404(User, pk=pk)
    is_mail = "mail" in request.POST
    form = GivenPasswordForm(None if is_mail else posted(request))
    try:
        if is_mail:
            passwords.password_mail_to(by=request.user, account=account)
            said = f"A mail is on its way to {account.email}."
            return done(request, said, "person-detail", pk)
        if form.is_valid():
            number = passwords.account_set_password(
                by=request.user, account=account, **form.cleaned_data
            )
            said = f"{account} has a new password; their sessions have ended."
            said += f" Tokens revoked: {number}."
            return done(request, said, "person-detail", pk)
    except ActionRefused as refusal:
        if not form.is_bound:
            messages.error(request, refusal.sentence)
            return redirect("person-password", pk)
        form.refuse(refusal)
    return form_page(
        request,
        "people/password.html",
        form,
        account=account,
        tokens=tokens_of(account).count(),
        can_mail=mails_are_sent() and account.email and account.is_active,
    )


@require_safe_or_POST
@administrators_only
def person_close(request: WebRequest, pk: int) -> HttpResponse:
    """Confirm, then close an account."""
    person = find_person(request.user, pk=pk)
    if person is None:
        raise Http404
    if request.method != "POST":
        return render(request, "people/close.html", {"person": person})
    act = partial(accounts.account_close, by=request.user, account=person.account)
    return acted(request, act, "person-detail", pk, said="The account is closed.")


@require_POST
@administrators_only
def person_reopen(request: WebRequest, pk: int) -> HttpResponse:
    """Reopen an account."""
    account = get_object_or_404(User, pk=pk)
    act = partial(accounts.account_reopen, by=request.user, account=account)
    return acted(request, act, "person-detail", pk, said="The account is open again.")


@require_safe_or_POST
@administrators_only
def team_create(request: WebRequest) -> HttpResponse:
    """Create a team."""
    form = TeamForm(posted(request))

    def create(*, home_site: Site | None, **asked: Any) -> Team:
        team = accounts.team_create(by=request.user, **asked)
        team_home_site_choose(by=request.user, team=team, site=home_site)
        return team

    if team := form.tried(create):
        said = f"Made the team {team}. Add people to it."
        return done(request, said, "person-list")
    return form_page(request, "people/team.html", form)


@require_safe_or_POST
@administrators_only
def team_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a team's name and quota."""
    team = get_object_or_404(Team, pk=pk)
    homes = HomeSite.objects.filter(team=team).values_list("site", flat=True)
    initial = {
        "name": team.name,
        "home_site": homes.first(),
        **QuotaForm.initial_of(team),
    }
    form = TeamForm(posted(request), initial=initial)

    def update(*, home_site: Site | None, **asked: Any) -> Team:
        team_home_site_choose(by=request.user, team=team, site=home_site)
        return team_update(by=request.user, team=team, **asked)

    if form.tried(update):
        return done(request, "Saved.", "team-list")
    return form_page(request, "people/team.html", form, team=team)
