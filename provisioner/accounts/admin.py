"""Accounts for administrators: who is who in Perforce and on the file system."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from provisioner.accounts.models import User


@admin.register(User)
class AccountAdmin(UserAdmin[User]):
    list_display = ("username", "p4_user", "uid", "gid", "is_service", "is_staff")
    list_filter = ("is_staff", "is_service", "is_active")
    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        ("Workspaces", {"fields": ("p4_user", "uid", "gid", "is_service")}),
    )
