"""Forms for sites and Perforce servers. Their models validate the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from provisioner.sites.actions.pausing import LONGEST_REASON
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.values import check_network, client_match_validator
from provisioner.web.forms import LinesField, Refusable

if TYPE_CHECKING:
    _OfSite = forms.ModelForm[Site]
    _OfServer = forms.ModelForm[PerforceServer]
else:
    _OfSite = _OfServer = forms.ModelForm

NAME_HELP = (
    "Lower-case letters, digits and hyphens. It cannot be changed, since the "
    "variable of the password is named after it."
)
TAKEN = "That name is taken. Choose another one."
_CODE = {"autocomplete": "off", "spellcheck": "false", "class": "code"}


def of_any_server() -> forms.ModelChoiceField[PerforceServer]:
    """Return the filter of a list that leaves the rows of one Perforce server."""
    return forms.ModelChoiceField(
        PerforceServer.objects.all(),
        required=False,
        to_field_name="name",
        empty_label="All servers",
    )


def _code() -> forms.TextInput:
    return forms.TextInput(attrs=_CODE)


class HostsField(LinesField):
    """Hosts and networks, one per line or separated by commas."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list):
            return value
        return super().to_python(value).replace(",", "\n").split()

    validate_one: Callable[[str], None] = staticmethod(client_match_validator)

    def run_validators(self, value: Any) -> None:
        for host in value:
            try:
                self.validate_one(host)
            except ValidationError as error:
                raise ValidationError(f"“{host}”: {error.message}") from error

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value


class NetworksField(HostsField):
    """Networks, one per line or separated by commas."""

    validate_one = staticmethod(check_network)


SITE_LABELS = {
    "ontap_host": "Management address",
    "ontap_port": "Port",
    "ontap_user": "User",
    "ontap_ca_file": "CA file",
    "mounting": "Volumes on hosts",
    "nfs_server": "NFS server",
    "ssh_host": "SSH host of people",
    "export_policy": "Export policy",
    "template_uid": "uid of templates",
    "template_gid": "gid of templates",
    "clones_per_volume": "Clones of a volume",
    "volumes_per_svm": "Volumes of the SVM",
    "spreads_templates": "Spread templates over aggregates",
    "volumes_per_node": "Volumes of a node",
    "snapshots_per_volume": "Snapshots of a volume",
    "free_percent": "Kept free, in percent",
    "overcommit_percent": "Overcommitted at most, in percent",
    "reown": "How a clone gets its owner",
    "clones_open_to": "Who may enter a clone",
    "shows_snapshots": "Show .snapshot in clones",
    "remove_contents": "Remove files before the clone",
}
SITE_HELP = {
    "name": NAME_HELP,
    "title": "The title on pages; empty: the name.",
    "ontap_host": "Of the cluster, or of the SVM.",
    "ontap_ca_file": "A PEM file at this path on every machine. Empty: the system's "
    "certificate authorities.",
    "mount_options": "What its hosts mount with, such as vers=3,hard,nconnect=8.",
    "export_policy": "Created and maintained by Cloneyard: it needs a policy of its "
    "own.",
}
SITE_WIDGETS = {
    name: _code()
    for name in (
        *("name", "ontap_host", "ontap_user", "ontap_ca_file", "svm", "aggregate"),
        *("mount_root", "mount_options", "rescue_root", "export_policy", "ssh_host"),
        "nfs_server",
    )
}
SERVER_LABELS = {
    "upstream": "Upstream",
    "catch_up_seconds": "Wait for a change, in seconds",
    "when_behind": "If it stays behind",
    "flush_limit": "Budget",
    "maintenance_windows": "Maintenance",
    "sync_connections": "Connections of a sync",
    "checks_read_access": "Check what people may read",
    "read_access_host": "Their address",
    "accepts_tickets": "Tickets sign in",
    "partitioned_development": "Partitioned clients for development",
    "is_scratch": "Scratch: it may be measured",
}
SERVER_HELP = {
    "name": NAME_HELP,
    "p4port": "Such as perforce:1666, or ssl:perforce:1666.",
    "p4charset": "none, or for a server in Unicode mode utf8.",
    "fingerprint": "Of an ssl: port, as p4d -Gf and p4 trust show it. A test shows the "
    "one that the server offers.",
}
SERVER_WIDGETS = {
    name: _code()
    for name in (
        *("name", "p4port", "people_p4port", "p4user", "p4charset", "fingerprint"),
        *("server_id",),
    )
} | {"maintenance_windows": forms.Textarea(attrs={"rows": 2, **_CODE})}


class SiteForm(Refusable, _OfSite):
    """A site. The name of an existing one cannot change."""

    export_clients = HostsField(
        rows=3,
        label="Who may mount",
        help_text="Hosts and networks, one per line, such as 10.0.0.0/24.",
    )
    worker_clients = HostsField(
        rows=2,
        required=False,
        label="Hosts of workers",
        help_text="Only they get superuser access, and see clones being retired. "
        "Empty: all hosts that may mount do.",
    )
    networks = NetworksField(
        rows=2,
        required=False,
        label="Networks",
        help_text="Where its people and CI agents are, one per line, such as "
        "10.2.0.0/16. A request for the nearest site from there gets its workspace "
        "here, if nobody has chosen a home site.",
    )

    class Meta:
        model = Site
        exclude = ()
        labels = SITE_LABELS
        help_texts = SITE_HELP
        widgets = SITE_WIDGETS
        error_messages: ClassVar = {"name": {"unique": TAKEN}}

    def __init__(self, data: Any = None, *, instance: Site | None = None) -> None:
        super().__init__(data, instance=instance)
        if instance is not None:
            del self.fields["name"]
            return
        servers = list(PerforceServer.objects.all()[:2])
        if len(servers) == 1:
            self.initial["perforce_server"] = servers[0]


class PerforceServerForm(Refusable, _OfServer):
    """A Perforce server. The name of an existing one cannot change."""

    class Meta:
        model = PerforceServer
        exclude = ()
        labels = SERVER_LABELS
        help_texts = SERVER_HELP
        widgets = SERVER_WIDGETS
        error_messages: ClassVar = {"name": {"unique": TAKEN}}

    def __init__(
        self, data: Any = None, *, instance: PerforceServer | None = None
    ) -> None:
        super().__init__(data, instance=instance)
        if instance is not None:
            del self.fields["name"]
            upstream = self.fields["upstream"]
            assert isinstance(upstream, forms.ModelChoiceField)
            upstream.queryset = PerforceServer.objects.exclude(pk=instance.pk)


class PauseForm(forms.Form):
    """The reason why a Perforce server is paused."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Reason for pausing",
        help_text="People with waiting work read it.",
    )
