"""Forms for signing in, on our page and in Django's admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import (
    AuthenticationForm,
    PasswordChangeForm,
    SetPasswordForm,
)
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from provisioner.accounts.attempts import TooManyAttempts, begin_attempt
from provisioner.accounts.models import User
from provisioner.accounts.refusals import SignInRefused


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
        try:
            cleaned = super().clean()
        except SignInRefused as refusal:
            attempt.withdrawn()
            raise ValidationError(refusal.sentence, code=refusal.code) from refusal
        attempt.succeeded()
        return cleaned


class RevokingForm(forms.Form):
    """Offers to revoke tokens: somebody else may know the old password."""

    revokes_tokens = forms.BooleanField(
        required=False,
        initial=True,
        label="Revoke my API tokens, too",
        help_text="Whoever knew the password may have created one. Scripts and CI then "
        "need new ones.",
    )


class ForgottenForm(forms.Form):
    """Requests a mail. Repeated requests are slowed down like guesses."""

    email = forms.EmailField(
        max_length=254,
        label="Mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.request = request

    def clean_email(self) -> str:
        """Raises: ValidationError."""
        address = str(self.cleaned_data["email"])
        try:
            begin_attempt(self.request, name=address)
        except TooManyAttempts as refusal:
            raise ValidationError(str(refusal), code="throttled") from None
        return address


# Not generic at run time.
class ChosenPasswordForm(RevokingForm, SetPasswordForm):  # type: ignore[type-arg]
    """A new password, chosen after following a mailed link."""


class NewPasswordForm(RevokingForm, PasswordChangeForm):
    """A new password of one's own. Guesses at the old one are slowed down, too."""

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        assert isinstance(request.user, User)
        super().__init__(request.user, data)
        self.request = request

    def clean_old_password(self) -> str:
        """Return the old password if it is right.

        Raises: ValidationError.
        """
        try:
            attempt = begin_attempt(self.request, name=self.user.get_username())
        except TooManyAttempts as refusal:
            raise ValidationError(str(refusal), code="throttled") from None
        password = super().clean_old_password()
        attempt.succeeded()
        return str(password)


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The same for Django's admin, which requires an administrator."""
