"""Sign-in, passwords, and one's own account."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django_htmx.http import HttpResponseClientRefresh

from provisioner.accounts import zones
from provisioner.accounts.forms import (
    ChosenPasswordForm,
    ForgottenForm,
    NewPasswordForm,
    SignInForm,
)
from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import User
from provisioner.accounts.sessions import sessions_end
from provisioner.accounts.tokens import tokens_of
from provisioner.identities.absence import closes_soon_at
from provisioner.identities.queries import password_keeper, password_keepers
from provisioner.limits.admission import quota_limits
from provisioner.people.actions.accounts import account_choose_zone
from provisioner.people.actions.passwords import password_mail_ask
from provisioner.people.actions.tokens import api_tokens_revoke_own
from provisioner.people.forms.people import PreferencesForm
from provisioner.sites.actions.home_sites import home_site_choose
from provisioner.sites.models import HomeSite
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import done, form_page, require_safe_or_POST


@method_decorator(login_not_required, name="dispatch")
class SignInView(LoginView):
    template_name = "people/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return {
            **context,
            "single_sign_on": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
            "keepers": list(password_keepers().values()),
            "takes_tickets": bool(settings.P4_SIGN_IN_SERVER),
            "next_query": urlencode({"next": self.get_redirect_url()}),
        }

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_invalid(form)
        seconds = getattr(form, "retry_after_seconds", None)
        if seconds is not None:
            answer.status_code = 429
            answer["Retry-After"] = str(seconds)
        return answer

    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        # A page that polls is sent here when its session ends. Reloading it leads to
        # this form as a page, instead of the form inside that page.
        if getattr(request, "htmx", False):
            return HttpResponseClientRefresh()
        return super().dispatch(request, *args, **kwargs)


@login_not_required
@require_safe_or_POST
def password_forgotten(request: HttpRequest) -> HttpResponse:
    """Mail a link to choose a password; without mail, say whom to ask."""
    form = ForgottenForm(request, posted(request))
    if form.is_valid():
        password_mail_ask(address=form.cleaned_data["email"])
        said = (
            "If an account has this address, a mail is on its way. No mail after some "
            "minutes? An administrator can set your password."
        )
        return done(request, said, "login")
    context = {"form": form, "mails_are_sent": mails_are_sent()}
    status = 422 if form.errors else 200
    return render(request, "people/password_forgotten.html", context, status=status)


@method_decorator(login_not_required, name="dispatch")
class PasswordNewView(PasswordResetConfirmView):
    """Choose a password after following a mailed link; other sessions end."""

    template_name = "people/password_new.html"
    form_class = ChosenPasswordForm
    success_url = reverse_lazy("login")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        account = self.user if isinstance(self.user, User) else None
        tokens = tokens_of(account).count() if account is not None else 0
        return {**context, "tokens": tokens}

    def form_valid(self, form: ChosenPasswordForm) -> HttpResponse:
        answer = super().form_valid(form)
        sessions_end(form.user)
        said = "You have a new password. Sign in with it."
        if form.cleaned_data["revokes_tokens"]:
            said += f" Tokens revoked: {api_tokens_revoke_own(by=form.user)}."
        messages.success(self.request, said)
        return answer


@require_safe_or_POST
def my_password(request: WebRequest) -> HttpResponse:
    """Change my password; my other sessions end, and optionally my tokens."""
    form = NewPasswordForm(request, posted(request))
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, request.user)
        sessions_end(request.user, but=request.session.session_key)
        said = "Your password is changed. Your other sessions have ended."
        if form.cleaned_data["revokes_tokens"]:
            number = api_tokens_revoke_own(by=request.user)
            said += f" Tokens revoked: {number}."
        return done(request, said, "my-account")
    tokens = tokens_of(request.user).count()
    return render(
        request,
        "people/my_password.html",
        {"form": form, "tokens": tokens, "elsewhere": password_keeper(request.user)},
        status=422 if form.errors else 200,
    )


@require_safe_or_POST
def my_account(request: WebRequest) -> HttpResponse:
    """Show one's account, and choose the time zone of pages and the home site."""
    browsers = request.COOKIES.get(zones.COOKIE, "")
    homes = HomeSite.objects.filter(person=request.user)
    form = PreferencesForm(
        posted(request),
        home_site=homes.values_list("site", flat=True).first(),
        chosen=request.user.time_zone,
        browsers=browsers if zones.find_zone(browsers) else "",
    )
    if form.is_valid():
        chosen = form.cleaned_data
        account_choose_zone(by=request.user, time_zone=chosen["time_zone"])
        home_site_choose(by=request.user, site=chosen["home_site"])
        return done(request, "Saved.", "my-account")
    return form_page(
        request,
        "people/my_account.html",
        form,
        now=timezone.now(),
        quotas=quota_limits(request.user),
        installations_zone=zones.installations_zone().key,
        closes_at=closes_soon_at(request.user),
        provider=settings.OIDC_NAME,
    )
