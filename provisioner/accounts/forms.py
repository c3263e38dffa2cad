"""Forms to sign in, on our page and on the one of /admin/."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from provisioner.accounts.attempts import TooManyAttempts, begin_attempt


class SignInForm(AuthenticationForm):
    """`retry_after_seconds` is None unless there were too many attempts."""

    retry_after_seconds: int | None = None

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if name is None or not self.cleaned_data.get("password"):
            return super().clean()
        try:
            attempt = begin_attempt(self.request, name=name)
        except TooManyAttempts as refusal:
            self.retry_after_seconds = refusal.seconds
            raise ValidationError(str(refusal), code="throttled") from None
        cleaned = super().clean()
        attempt.succeeded()
        return cleaned


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The same for /admin/, which asks for an administrator besides."""
