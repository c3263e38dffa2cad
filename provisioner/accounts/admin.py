"""Accounts for administrators: who is who in Perforce and on the file system."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from provisioner.accounts.forms import AdminSignInForm
from provisioner.accounts.models import Team, User

admin.site.login_form = AdminSignInForm

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
