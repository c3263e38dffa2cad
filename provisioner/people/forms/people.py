"""Forms of accounts, for people and administrators."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.db.models import TextChoices

from provisioner.accounts.models import Quota, Team
from provisioner.accounts.zones import zones_to_choose
from provisioner.lib.sizes import exact_size_text, size_text
from provisioner.people.actions.accounts import MOST_BYTES, MOST_WORKSPACES
from provisioner.people.queries import Issue, Standing
from provisioner.sites.models import Site
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, SizeField

LONGEST_PASSWORD = 4096
MOST_UID = 2**31 - 1


class HomeSiteForm(AskingForm):
    """The site where a person, or a team, gets workspaces."""

    home_site = forms.ModelChoiceField(
        required=False,
        queryset=Site.objects.order_by("name"),
        label="Home site",
        empty_label="The template's site",
        help_text="Where a template has a mirror there, workspaces are cloned there "
        "unless another site is chosen.",
    )


class PreferencesForm(HomeSiteForm):
    """What people choose for themselves."""

    time_zone = forms.ChoiceField(required=False, label="Time zone")

    def __init__(
        self, data: Any = None, *, chosen: str, browsers: str, home_site: int | None
    ) -> None:
        super().__init__(data, initial={"time_zone": chosen, "home_site": home_site})
        field = self.fields["time_zone"]
        assert isinstance(field, forms.ChoiceField)
        zones = zones_to_choose()
        others = [chosen] if chosen and chosen not in zones else []
        otherwise = browsers or settings.DISPLAY_TIME_ZONE
        field.choices = [
            ("", f"The browser's, now {otherwise}"),
            *((zone, zone) for zone in (*others, *zones)),
        ]


class PeopleFilterForm(FilterForm):
    """Filters of accounts."""

    q = forms.CharField(required=False, max_length=100, label="Name, mail or team")
    role = forms.ChoiceField(
        required=False, choices=[("", "All roles"), *Standing.choices]
    )
    team = forms.ModelChoiceField(
        required=False, queryset=Team.objects.all(), empty_label="All teams"
    )
    issue = forms.ChoiceField(
        required=False, choices=[("", "Any"), *Issue.choices], label="With"
    )
    gone = forms.ChoiceField(
        required=False,
        label="Accounts",
        choices=[("", "In use"), ("1", "Closed")],
    )


class LimitInput(forms.TextInput):
    """The limit of the choice before it, shown only while “Limit to” is chosen.

    Browsers check nothing of it: they refuse to send a form with a hidden field that
    is empty or wrong, and cannot show why.
    """

    def __init__(self, attrs: dict[str, str] | None = None) -> None:
        super().__init__({"data-limit": "", **(attrs or {})})

    def use_required_attribute(self, initial: Any) -> bool:
        return False


class Bound(TextChoices):
    """A change of one limit of a quota."""

    SAME = "same", "Leave as it is"
    LIMIT = "limit", "Limit to"
    NONE = "none", "No limit"


_HOW_MUCH = "Say how much."
_OF_THEIR_OWN = "The space that workspaces do not share with their templates."
_BOUNDS = [("", "Choose…"), *((b, b.label) for b in (Bound.LIMIT, Bound.NONE))]


class QuotaForm(AskingForm):
    """A quota. There is no limit only where somebody says so."""

    workspaces = forms.ChoiceField(label="Workspaces at a time", choices=_BOUNDS)
    max_workspaces = forms.IntegerField(
        min_value=0,
        max_value=MOST_WORKSPACES,
        label="Number of workspaces",
        widget=LimitInput({"inputmode": "numeric"}),
        error_messages={"required": _HOW_MUCH},
    )
    space = forms.ChoiceField(
        label="Space of their own", choices=_BOUNDS, help_text=_OF_THEIR_OWN
    )
    max_unique_bytes = SizeField(
        max_length=40,
        label="Size",
        help_text="Such as 200 GiB.",
        widget=LimitInput,
        error_messages={"required": _HOW_MUCH},
    )
    BOUNDS: ClassVar = {"workspaces": "max_workspaces", "space": "max_unique_bytes"}

    def clean_max_unique_bytes(self) -> int:
        taken: int = self.cleaned_data["max_unique_bytes"]
        if taken > MOST_BYTES:
            raise forms.ValidationError("No file system is that large.")
        return taken

    def clean(self) -> dict[str, Any]:
        """Return the entered fields, with the changed limits of the quota."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        for choice, name in self.BOUNDS.items():
            bound, value = found.pop(choice, ""), found.pop(name, None)
            if bound == Bound.LIMIT:
                found[name] = value
                continue
            self.errors.pop(name, None)  # it is hidden, whatever it has or lacks
            if bound == Bound.NONE:
                found[name] = None
        return found

    @staticmethod
    def initial_of(quota: Quota) -> dict[str, Any]:
        """Return a quota in the form's own format."""
        number, taken = quota.max_workspaces, quota.max_unique_bytes
        return {
            "workspaces": Bound.NONE if number is None else Bound.LIMIT,
            "max_workspaces": number,
            "space": Bound.NONE if taken is None else Bound.LIMIT,
            "max_unique_bytes": "" if taken is None else exact_size_text(taken),
        }

    @staticmethod
    def in_words(quota: Quota) -> str:
        """Return a quota as a phrase."""
        number, taken = quota.max_workspaces, quota.max_unique_bytes
        said = "Any number" if number is None else f"Up to {number:,}"
        return f"{said} and {'any space' if taken is None else size_text(taken)}"


class TeamChoiceForm(forms.Form):
    team = forms.ModelChoiceField(
        required=False, queryset=Team.objects.all(), empty_label="No team"
    )


class TeamChangeForm(AskingForm):
    """A team for many accounts; leaving their team is an option, too."""

    team = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._teams = {str(team.pk): team for team in Team.objects.all()}
        field = self.fields["team"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            ("", "Choose a team…"),
            *((key, team.name) for key, team in self._teams.items()),
            ("none", "No team"),
        ]

    def clean_team(self) -> Team | None:
        return self._teams.get(self.cleaned_data["team"])


class RoleChangeForm(AskingForm):
    """A role for many accounts."""

    standing = forms.ChoiceField(
        label="Role", choices=[("", "Choose a role…"), *Standing.choices]
    )


class QuotaChangeForm(QuotaForm):
    """Changes to the quotas of many accounts."""

    workspaces = forms.ChoiceField(
        label="Workspaces at a time", choices=Bound.choices, initial=Bound.SAME
    )
    space = forms.ChoiceField(
        label="Space of their own",
        choices=Bound.choices,
        initial=Bound.SAME,
        help_text=_OF_THEIR_OWN,
    )

    def clean(self) -> dict[str, Any]:
        """Return what changes: max_workspaces, max_unique_bytes, or both."""
        changes = super().clean()
        if not changes and not self.errors:
            raise forms.ValidationError("Choose what changes.")
        return changes


class AccountForm(TeamChoiceForm, QuotaForm):
    """A person's quotas, and their identities in other systems."""

    email = forms.EmailField(required=False, max_length=254, label="Mail address")
    standing = forms.ChoiceField(label="Role", choices=Standing.choices)
    p4_user = forms.CharField(
        required=False,
        max_length=128,
        label="Perforce user",
        help_text="Empty: the username.",
    )
    uid = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_UID,
        help_text="As in your directory. Without uid and gid an account gets no "
        "workspace.",
    )
    gid = forms.IntegerField(required=False, min_value=1, max_value=MOST_UID)

    field_order = (
        *("username", "password", "standing", "team", "email"),
        *("p4_user", "uid", "gid"),
        *("workspaces", "max_workspaces", "space", "max_unique_bytes"),
    )


class NewAccountForm(AccountForm):
    username = forms.CharField(
        max_length=150, help_text="The sign-in name. It cannot change."
    )
    password = forms.CharField(
        required=False,
        max_length=LONGEST_PASSWORD,
        strip=False,
        label="First password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Empty: choose one later, or let them choose by mail.",
    )
    sends_mail = forms.BooleanField(
        required=False,
        label="Send a mail to choose a password",
        help_text="It is sent to the address above. Its link is valid for a few days.",
    )


class GivenPasswordForm(AskingForm):
    """A password set for another person."""

    password = forms.CharField(
        max_length=LONGEST_PASSWORD,
        strip=False,
        label="New password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Tell them yourself. They can change it later.",
    )
    revokes_tokens = forms.BooleanField(
        required=False,
        initial=True,
        label="Revoke their API tokens, too",
        help_text="Scripts and CI then need new ones.",
    )


class TeamForm(HomeSiteForm, QuotaForm):
    name = forms.CharField(max_length=100)

    field_order = ("name", "home_site", *QuotaForm.base_fields)
