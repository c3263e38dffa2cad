"""Signing in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django_htmx.http import HttpResponseClientRefresh

from provisioner.accounts.forms import SignInForm


@method_decorator(login_not_required, name="dispatch")
class SignInView(LoginView):
    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

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
