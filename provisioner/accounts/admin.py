"""Accounts in Django's admin: their Perforce users, uids and gids."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from provisioner.accounts.forms import AdminSignInForm
from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import tokens_of

admin.site.login_form = AdminSignInForm


def to_our_page(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Redirect to the page that also offers to revoke tokens."""
    return redirect("my-password")


admin.site.password_change = to_our_page  # type: ignore[method-assign, assignment]

QUOTA = ("max_workspaces", "max_unique_bytes")


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin[Team]):
    list_display = ("name", *QUOTA)
    search_fields = ("name",)


@admin.register(User)
class AccountAdmin(UserAdmin[User]):
    list_display = (
        *("username", "team", "p4_user", "uid", "gid", "is_service", "is_staff"),
        "max_workspaces",
    )
    list_filter = ("is_staff", "is_service", "is_active", "team")
    # Without a uid nobody can be given a workspace: it is asked for at once.
    add_fieldsets = (
        *(UserAdmin.add_fieldsets or ()),
        (
            "Workspaces",
            {"fields": ("email", "p4_user", "uid", "gid", "team", "is_service")},
        ),
    )
    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        (
            "Workspaces",
            {"fields": ("p4_user", "uid", "gid", "team", "is_service", "time_zone")},
        ),
        ("Quota", {"fields": QUOTA}),
    )

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Set somebody's password, and offer to revoke the tokens that stay valid."""
        answer = super().user_change_password(request, id, form_url)
        user = self.get_object(request, unquote(id))
        if request.method == "POST" and answer.status_code == 302 and user is not None:
            self._offer_tokens(request, user)
        return answer

    def _offer_tokens(self, request: HttpRequest, user: User) -> None:
        number = tokens_of(user).count()
        if number:
            page = f"{reverse('token-everybody-list')}?{urlencode({'q': user})}"
            said = "API tokens of {} are still valid: {}. <a href='{}'>Revoke them</a>"
            self.message_user(
                request, format_html(said, user, number, page), messages.WARNING
            )
