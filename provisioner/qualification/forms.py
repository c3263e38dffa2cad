"""Forms of runs."""

from __future__ import annotations

from typing import Any

from django import forms

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.lib.refusals import InvalidRequest
from provisioner.qualification.models import BOUNDS, QualificationRun
from provisioner.qualification.profiles import CHOICES, PROFILES, Target
from provisioner.qualification.queries import (
    runs_visible_to,
    sandboxes_to_measure,
    servers_to_measure,
    templates_to_measure,
)
from provisioner.sandboxes.forms import SandboxForm
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm

_TITLES = {
    "files": "Files",
    "size": "Bytes of each file",
    "seed": "Seed",
    "children": "Children on each host, or most workspaces at once",
    "hosts": "Hosts",
    "rounds": "Browses of each child",
    "stagger_ms": "Milliseconds between children",
    "repeats": "Repeats",
}


def number_fields() -> dict[str, forms.Field]:
    """Return a field for each parameter."""
    return {
        name: forms.IntegerField(
            required=False, min_value=low, max_value=high, label=_TITLES[name]
        )
        for name, (low, high) in BOUNDS.items()
    }


class RunFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Server, sandbox or note")
    profile = forms.ChoiceField(
        required=False, choices=[("", "All profiles"), *CHOICES]
    )
    state = forms.ChoiceField(
        required=False, choices=[("", "All states"), *QualificationRun.State.choices]
    )


class TemplateField(forms.ModelChoiceField[Template]):
    """Templates, with their sites."""

    def label_from_instance(self, obj: Template) -> str:
        return f"{obj.name} at {obj.site}"


class RunForm(AskingForm):
    """What is to be measured; an empty number is the profile's usual one."""

    profile = forms.ChoiceField(choices=CHOICES)
    sandbox = forms.ModelChoiceField(
        Sandbox.objects.none(),
        to_field_name="name",
        required=False,
        empty_label="None",
    )
    server = forms.ModelChoiceField(
        PerforceServer.objects.none(),
        to_field_name="name",
        required=False,
        empty_label="None",
        label="Server marked as scratch",
    )
    template = TemplateField(
        Template.objects.none(),
        required=False,
        empty_label="None",
        help_text="For the profile “Workspaces”. It requests them where people work.",
    )
    is_cold = forms.BooleanField(
        required=False,
        label="Cold caches",
        help_text="The host forgets the files of the sandbox before each repeat.",
    )
    note = forms.CharField(
        required=False,
        max_length=200,
        help_text="Such as “new firmware”. It tells runs apart.",
    )

    def __init__(
        self, data: Any = None, *, by: User, initial: dict[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial=initial)
        for name, rows in (
            ("sandbox", sandboxes_to_measure(by)),
            ("server", servers_to_measure(by)),
            ("template", templates_to_measure(by)),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.queryset = rows
        self.fields.update(number_fields())

    @property
    def numbers(self) -> list[forms.BoundField]:
        return [self[name] for name in BOUNDS]


class BaselineForm(SandboxForm):
    """A sandbox that is measured and retired; an empty number is the usual one."""

    profile = forms.ChoiceField(
        choices=[
            (each.code, each.title)
            for each in PROFILES
            if each.target != Target.TEMPLATE
        ]
    )
    is_cold = forms.BooleanField(
        required=False,
        label="Cold caches",
        help_text="The host forgets the files of the sandbox before each repeat.",
    )
    note = forms.CharField(
        required=False,
        max_length=200,
        help_text="Such as “before the upgrade”. It tells runs apart.",
    )

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        for decided in ("purpose", "port", "server_id", "reason"):
            del self.fields[decided]
        self.fields["name"].initial = "baseline"
        self.fields.update(number_fields())

    @property
    def numbers(self) -> list[forms.BoundField]:
        return [self[name] for name in BOUNDS]


class CompareForm(AskingForm):
    """Two runs of one profile."""

    first = forms.IntegerField(min_value=1, max_value=2**31 - 1, label="First run")
    second = forms.IntegerField(min_value=1, max_value=2**31 - 1, label="Second run")

    def runs(self, by: User) -> tuple[QualificationRun, QualificationRun]:
        """Return the two runs. Raises: InvalidRequest."""
        found = []
        for name in ("first", "second"):
            run = runs_visible_to(by).filter(pk=self.cleaned_data[name]).first()
            if run is None:
                raise InvalidRequest.at(name, "There is no run with this number.")
            found.append(run)
        first, second = found
        if first.profile != second.profile:
            raise InvalidRequest.at(
                "second",
                f"Run {first.pk} is {first.described.title}, and run {second.pk} "
                f"{second.described.title}. Two of one profile can be compared.",
            )
        return first, second
