"""Signing in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django_htmx.http import HttpResponseClientRefresh


@method_decorator(login_not_required, name="dispatch")
class SignInView(LoginView):
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        # A page that polls is sent here when its session ends. Reloading it leads to
        # this form as a page, instead of the form inside that page.
        if getattr(request, "htmx", False):
            return HttpResponseClientRefresh()
        return super().dispatch(request, *args, **kwargs)
