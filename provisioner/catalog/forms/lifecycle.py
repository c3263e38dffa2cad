"""Forms for a template's title, owner, archiving and deletion."""

from __future__ import annotations

from django import forms

from provisioner.accounts.models import User
from provisioner.catalog.actions.lifecycle import LONGEST_REASON, LONGEST_TITLE
from provisioner.web.forms import AskingForm


class TemplateRenameForm(AskingForm):
    """The title that pages show."""

    title = forms.CharField(
        required=False,
        max_length=LONGEST_TITLE,
        help_text="Empty: its name.",
    )


class TemplateOwnerForm(AskingForm):
    """The new owner."""

    owner = forms.ModelChoiceField(
        queryset=User.objects.filter(is_active=True).order_by("username")
    )


class OptionalReasonForm(AskingForm):
    """A reason that may be left out."""

    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="One line, such as what to use instead.",
    )
