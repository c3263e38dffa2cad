"""What people type, checked for shape; the domain decides what is possible."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import MinValueValidator
from django.forms.models import ModelChoiceIterator
from django.utils import timezone

from provisioner.catalog.freshness import behind_of
from provisioner.catalog.models import LineEnd, Snapshot, SnapshotQuerySet, Template
from provisioner.engine.models import Unsaved
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.lib.refusals import (
    ActionRefused,
    LeaseTooLong,
    NameTaken,
    RequestKeyReused,
)
from provisioner.lib.sizes import exact_size_text, parse_size
from provisioner.lib.times import age_text, exact_text
from provisioner.limits.limits import Limit, LimitReached
from provisioner.sites.models import OpenTo, Site
from provisioner.web.selects import lean_selects
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import unsupported_purposes
from provisioner.workspaces.queries import available_snapshots, default_snapshot

SECONDS_A_DAY = 24 * 3600
# What no policy allows; it keeps dates that nobody could write out of the domain.
LONGEST_LEASE_DAYS = 3650


class Refusable(forms.BaseForm):
    """Whose wish the domain may refuse."""

    is_refused = False
    limits: tuple[Limit, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lean_selects(self)

    def refuse(self, refusal: ActionRefused) -> None:
        """Show the refusal's sentence at the form."""
        self.is_refused = True
        if isinstance(refusal, LimitReached):
            self.limits = refusal.limits
        self.add_error(None, refusal.sentence)

    @property
    def http_code(self) -> int:
        """Return the code of a page that shows this form."""
        if self.is_refused:
            return 409
        return 422 if self.is_bound and self.errors else 200


class AskingForm(Refusable, forms.Form):
    """A form whose wish the domain may refuse."""


class LinesField(forms.CharField):
    """Lines of text. Browsers end them with CR LF, which no shell or p4 expects."""

    def __init__(self, *, rows: int, **kwargs: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": rows, "spellcheck": "false", "class": "code"}
        )
        super().__init__(widget=widget, **kwargs)

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return text.replace("\r\n", "\n")


class SizeField(forms.CharField):
    """A number of bytes, written as "100 GiB"."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return parse_size(text)
        except ValueError as error:
            raise forms.ValidationError(
                "Write a size such as 100 GiB or 512 MiB."
            ) from error


class EnvironmentField(LinesField):
    """Environment variables, one NAME=value a line."""

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


if TYPE_CHECKING:
    _ChoiceOfSnapshot = forms.ModelChoiceField[Snapshot]
    _ChoiceOfTemplate = forms.ModelChoiceField[Template]
    _ChoiceOfTemplates = forms.ModelMultipleChoiceField[Template]
else:
    _ChoiceOfSnapshot = forms.ModelChoiceField
    _ChoiceOfTemplate = forms.ModelChoiceField
    _ChoiceOfTemplates = forms.ModelMultipleChoiceField


class NameField(forms.CharField):
    """A name that becomes part of those of a volume, a client and a path."""

    widget = forms.TextInput(
        attrs={"autocomplete": "off", "spellcheck": "false", "class": "code"}
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_NAME, validators=[name_validator], **kwargs)


class NamesToChoose(ModelChoiceIterator):
    """Reads no more of the rows than their names; what is chosen comes whole."""

    def __init__(self, field: Any) -> None:
        super().__init__(field)
        self.queryset = self.queryset.select_related(None).only("name")


class TemplateChoiceField(_ChoiceOfTemplate):
    """A choice among hundreds of templates."""

    iterator = NamesToChoose


class TemplatesChoiceField(_ChoiceOfTemplates):
    """Some of hundreds of templates."""

    iterator = NamesToChoose
    widget = forms.CheckboxSelectMultiple


class SnapshotChoiceField(_ChoiceOfSnapshot):
    """A choice that shows mark, lag and age before the click; `behind` is by id."""

    behind: Mapping[int, int] = MappingProxyType({})

    def offer(self, snapshots: SnapshotQuerySet, *, usual: Snapshot | None) -> None:
        """Offer these, and to choose none where one of them is the usual."""
        self.queryset = snapshots
        self.behind = behind_of(snapshots)
        self.empty_label = "Choose one"
        if usual is not None:
            label = self.label_from_instance(usual)
            self.empty_label = f"Latest (recommended): {label[0].lower()}{label[1:]}"

    def label_from_instance(self, obj: Snapshot) -> str:
        said = [f"Change {obj.change}", obj.mark.lower()]
        if obj.part_change is not None:
            said[0] += f", parts at change {obj.part_change}"
        behind = self.behind.get(obj.pk)
        if behind is not None:
            said.append(f"{behind:,} {'change' if behind == 1 else 'changes'} behind")
        made_at = exact_text(timezone.localtime(obj.created_at))
        age = age_text(obj.created_at, now=timezone.now())
        return ", ".join([*said, f"built {age} ({made_at})"])


PURPOSES = {
    Workspace.Purpose.DEVELOPMENT: (
        "Development",
        "With a Perforce client of your own: edit, submit, sync.",
    ),
    Workspace.Purpose.BUILD: (
        "Build only",
        "The files alone, without a Perforce client. Nothing on the Perforce server "
        "changes.",
    ),
    Workspace.Purpose.CI: (
        "CI",
        "With a read-only client: sync and look things up. Leftover files are deleted.",
    ),
    Workspace.Purpose.CI_EDIT: (
        "CI that submits",
        "With a short-lived client whose have list puts no load on others.",
    ),
}


class WorkspaceCreateForm(AskingForm):
    """All of it has a default, so a button that sends nothing else is enough."""

    name = NameField(required=False)
    purpose = forms.ChoiceField(
        required=False, choices=Workspace.Purpose.choices, widget=forms.RadioSelect
    )
    snapshot = SnapshotChoiceField(required=False, queryset=Snapshot.objects.none())
    quality = forms.ChoiceField(
        required=False,
        label="At least",
        choices=[
            ("", "What the template asks for"),
            *Template.WantedQuality.choices,
        ],
    )
    wants_reconcile = forms.BooleanField(
        required=False, label="Compare the files with the depot"
    )
    lease_days = forms.IntegerField(
        required=False, min_value=1, max_value=LONGEST_LEASE_DAYS
    )
    request_key = forms.CharField(
        required=False, max_length=200, widget=forms.HiddenInput
    )

    def __init__(self, data: Any = None, *, template: Template) -> None:
        super().__init__(data, initial={"purpose": Workspace.Purpose.DEVELOPMENT})
        self._why_not = unsupported_purposes(template.site.perforce_server)
        snapshots = available_snapshots().filter(template=template)
        field = self.fields["snapshot"]
        assert isinstance(field, SnapshotChoiceField)
        field.offer(snapshots, usual=default_snapshot(template))
        field.error_messages["invalid_choice"] = (
            "That snapshot is not there any more. Choose a newer one."
        )

    @property
    def purposes(self) -> list[dict[str, Any]]:
        """What a workspace can be for, each with why it cannot be, if it cannot."""
        chosen = self["purpose"].value() or Workspace.Purpose.DEVELOPMENT
        return [
            {
                "value": purpose.value,
                "label": label,
                "help": text,
                "why_not": self._why_not.get(purpose, ""),
                "is_chosen": purpose == chosen,
            }
            for purpose, (label, text) in PURPOSES.items()
        ]

    def clean(self) -> dict[str, Any]:
        """Hand on the lease in seconds, as the domain has it; None: the usual one."""
        cleaned = super().clean() or self.cleaned_data
        days = cleaned.pop("lease_days", None)
        return {**cleaned, "lease_seconds": days and days * SECONDS_A_DAY}

    def clean_purpose(self) -> str:
        return self.cleaned_data["purpose"] or Workspace.Purpose.DEVELOPMENT

    def refuse(self, refusal: ActionRefused) -> None:
        super().refuse(refusal)
        if isinstance(refusal, NameTaken) and self.data.get("name"):
            self.errors.clear()
            self.add_error("name", refusal.sentence)
        if isinstance(refusal, LeaseTooLong):
            self.errors.clear()
            self.add_error("lease_days", refusal.sentence)
        if isinstance(refusal, RequestKeyReused):
            # Somebody went back to a form that had worked; the page has a new key now.
            self.errors.clear()
            self.add_error(
                None,
                "This form has got you a workspace before. Send it again to get "
                "another one.",
            )


class WorkspaceRetireForm(AskingForm):
    """`unsaved` is there only after somebody was shown what would be lost.

    What could not be compared cannot be rescued either.
    """

    def __init__(
        self, data: Any = None, *, has_unsaved: bool, can_be_rescued: bool
    ) -> None:
        super().__init__(data)
        if not has_unsaved:
            return
        choices = [
            (Unsaved.REFUSE, "Retire it only if all is settled by now"),
            (Unsaved.DISCARD, "Discard what is listed here"),
        ]
        if can_be_rescued:
            choices.insert(0, (Unsaved.RESCUE, "Rescue what is listed here"))
        self.fields["unsaved"] = forms.ChoiceField(
            label="What becomes of it",
            choices=choices,
            initial=choices[0][0],
            widget=forms.RadioSelect,
            required=False,
        )

    def choice(self) -> str:
        return self.cleaned_data.get("unsaved") or Unsaved.REFUSE


class TemplateDefinitionForm(AskingForm):
    """What a template is made from, without what cannot change later."""

    description = forms.CharField(
        required=False, max_length=500, help_text="One line for those who choose."
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
        help_text="Run by /bin/sh in the template's root. Empty: no build.",
    )
    build_environment = EnvironmentField(
        rows=3,
        required=False,
        help_text="Of builds and tests, one NAME=value a line. Values are shown to "
        "administrators alone.",
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
        help_text="Run after the build, in the same place. What it finds becomes the "
        "mark of the snapshot; one whose test failed nobody gets without choosing it. "
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
        help_text="What the build makes, as in P4IGNORE, one pattern a line. These "
        "files are not reported as untracked.",
    )
    volume_size_bytes = SizeField(
        label="Volume size",
        help_text="Such as 100 GiB. The volume is thin: it takes what it holds.",
    )
    snapshots_to_keep = forms.IntegerField(min_value=1, max_value=1000)

    @staticmethod
    def initial_of(template: Template) -> dict[str, Any]:
        """Return a template's definition as people write it."""
        names = TemplateDefinitionForm.base_fields
        return {
            **{name: getattr(template, name) for name in names},
            "build_environment": _assignments(template.build_environment),
            "bisection_environment": _assignments(template.bisection_environment),
            "volume_size_bytes": exact_size_text(template.volume_size_bytes),
        }


def _assignments(variables: dict[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in variables.items())


class TemplateCreateForm(TemplateDefinitionForm):
    """A template's definition with its place and name, which are for good."""

    site = forms.ModelChoiceField(queryset=Site.objects.order_by("name"))
    name = NameField(
        help_text="Part of the volume's and the client's name, so it is for good."
    )
    field_order = ("site", "name", "description")

    def __init__(self, data: Any = None) -> None:
        initial = TemplateDefinitionForm.initial_of(Template())
        super().__init__(data, initial={**initial, "site": _only_site()})


def _only_site() -> Site | None:
    """Return the site that need not be chosen, None where there are several."""
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
        "these alone are brought to the change, the rest stays where new workspaces "
        "are. Nobody gets such a snapshot without choosing it.",
    )

    def clean_paths(self) -> list[str]:
        lines = (line.strip() for line in self.cleaned_data["paths"].splitlines())
        return [line for line in lines if line]


class ShareForm(forms.Form):
    """Whom a workspace is shared with."""

    kind = forms.ChoiceField(choices=[("person", "A person"), ("team", "A team")])
    name = forms.CharField(max_length=150)

    def reader(self) -> dict[str, str]:
        """Return who it is, as `workspace_share` takes it."""
        return {self.cleaned_data["kind"]: self.cleaned_data["name"]}


class OpenForm(forms.Form):
    """Who may enter the directory of a workspace."""

    to = forms.ChoiceField(choices=OpenTo.choices)
