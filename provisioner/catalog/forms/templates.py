"""Forms for template definitions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MinValueValidator
from django.forms import model_to_dict

from provisioner.accounts.models import User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.catalog.actions.lifecycle import LONGEST_REASON, LONGEST_TITLE
from provisioner.catalog.models import LineEnd, Template
from provisioner.catalog.models.templates import check_error_patterns
from provisioner.sites.models import Site
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, LinesField, NameField, SizeField


class EnvironmentField(LinesField):
    """Environment variables, one NAME=value per line."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{name}={text}" for name, text in value.items())

    def clean(self, value: Any) -> Any:
        variables: dict[str, str] = {}
        for line in super().clean(value).splitlines():
            name, is_assigned, text = line.strip().partition("=")
            if not name:
                continue
            if not is_assigned or not name.isidentifier() or not name.isascii():
                raise forms.ValidationError(f"“{line}” is not NAME=value.")
            variables[name] = text
        return variables


class TemplateDefinitionForm(AskingForm):
    """The changeable part of a template's definition."""

    description = forms.CharField(
        required=False, max_length=500, help_text="One line that helps people choose."
    )
    view = LinesField(
        rows=5,
        required=False,
        label="View",
        help_text="View lines as in a client spec, such as //depot/main/... "
        "//template/...; a minus before a line leaves files out. Give a view or a "
        "stream.",
    )
    stream = forms.CharField(
        required=False,
        max_length=255,
        help_text="Such as //streams/main, instead of a view.",
    )
    line_end = forms.ChoiceField(choices=LineEnd.choices, label="Line endings")
    client_options = forms.CharField(
        max_length=120,
        help_text="The six words of a client spec's Options.",
    )
    submit_options = forms.CharField(max_length=40)
    build_command = LinesField(
        rows=3,
        required=False,
        help_text="Run by /bin/sh in the template's root. Every account can read what "
        "it prints. Empty: no build.",
    )
    build_environment = EnvironmentField(
        rows=3,
        required=False,
        help_text="Of builds and tests, one NAME=value per line. Only administrators "
        "see values.",
    )
    bisection_environment = EnvironmentField(
        rows=3,
        required=False,
        label="Environment of bisections",
        help_text="One NAME=value a line. People choose what they run there: keep no "
        "secrets in it, everybody can read it.",
    )
    commands_have_network = forms.BooleanField(
        required=False,
        label="Builds, tests and bisections reach other hosts",
    )
    build_timeout_seconds = forms.IntegerField(
        min_value=1, label="Time limit of a build, in seconds"
    )
    test_command = LinesField(
        rows=3,
        required=False,
        help_text="Run after the build, in the same place. Its result becomes the "
        "snapshot's quality. A snapshot with failed tests is never a default. "
        "Empty: no test.",
    )
    test_timeout_seconds = forms.IntegerField(
        min_value=1, label="Time limit of a test, in seconds"
    )
    wanted_quality = forms.ChoiceField(
        choices=Template.WantedQuality.choices,
        label="New workspaces get the newest that is",
    )
    ignore_patterns = LinesField(
        rows=3,
        required=False,
        label="Ignored files",
        help_text="Build outputs, as in P4IGNORE, one pattern per line. These "
        "files are not reported as untracked.",
    )
    error_patterns = LinesField(
        rows=3,
        required=False,
        label="Error lines",
        validators=[check_error_patterns],
        help_text="Regular expressions (RE2), one a line. The first line of a log that "
        "matches one is shown as its first error. Usual tools need none.",
    )
    volume_size_bytes = SizeField(
        label="Volume size",
        help_text="Such as 100 GiB. The volume is thin: it takes only what it holds. "
        "A new size is applied at once, never below what it holds.",
    )
    snapshots_to_keep = forms.IntegerField(min_value=1, max_value=1000)

    @staticmethod
    def initial_of(template: Template) -> dict[str, Any]:
        """Return a template's definition, as initial values of the form."""
        return model_to_dict(template, TemplateDefinitionForm.base_fields)


class TemplateCreateForm(TemplateDefinitionForm):
    """A new template's definition, with its site and name, which never change."""

    site = forms.ModelChoiceField(queryset=Site.objects.order_by("name"))
    name = NameField(
        help_text="Part of the names of the volume and the client, so it cannot change."
    )
    aggregate = forms.CharField(
        required=False,
        max_length=255,
        help_text="Where its volume is made, such as aggr2. Empty: the site chooses.",
        widget=forms.TextInput(
            attrs={"class": "code", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    field_order = ("site", "name", "description")

    def __init__(self, data: Any = None) -> None:
        initial = TemplateDefinitionForm.initial_of(Template())
        super().__init__(data, initial={**initial, "site": _only_site()})


def _only_site() -> Site | None:
    """Return the only site; None if there are several."""
    sites = list(Site.objects.all()[:2])
    return sites[0] if len(sites) == 1 else None


class TemplateBuildForm(AskingForm):
    change = forms.IntegerField(
        required=False,
        label="Change",
        validators=[MinValueValidator(1)],
        help_text="A submitted change. Empty: the newest under the view.",
        widget=forms.NumberInput(attrs={"min": 1, "class": "code"}),
    )
    is_clean = forms.BooleanField(required=False, label="Clean build")
    paths = LinesField(
        rows=3,
        required=False,
        label="Only these paths",
        help_text="Depot paths in the view, one a line, such as //depot/main/src/... — "
        "only these are updated to the change; the rest stays at the default "
        "snapshot's. Such a snapshot is never the default.",
    )

    def clean_paths(self) -> list[str]:
        lines = (line.strip() for line in self.cleaned_data["paths"].splitlines())
        return [line for line in lines if line]


class TemplateFilterForm(FilterForm):
    """Filters of templates."""

    q = forms.CharField(required=False, max_length=100, label="Name or description")
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "All states"),
            *(c for c in Template.State.choices if c[0] != Template.State.DELETED),
        ],
    )
    behind = forms.ChoiceField(
        required=False, choices=[("", "Behind or not"), ("1", "Behind")]
    )
    owner = forms.CharField(required=False, max_length=150)
    archived = forms.ChoiceField(
        required=False,
        choices=[("", "Not archived"), ("only", "Archived"), ("all", "All")],
    )


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
        queryset=User.objects.filter(is_active=True)
        .exclude(username=SYSTEM_USERNAME)
        .order_by("username")
    )


class OptionalReasonForm(AskingForm):
    """A reason that may be left out."""

    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="One line, such as what to use instead.",
    )
