"""Forms of sandboxes, and of what they need."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.functional import cached_property

from provisioner.accounts.models import Team
from provisioner.engine.workers import AliveWorker, alive_workers, unserved
from provisioner.lib import schedules
from provisioner.sandboxes.models import (
    HIGHEST_PORT,
    LONGEST_HOURS,
    LOWEST_PORT,
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPlan,
    ServerVolumes,
)
from provisioner.sandboxes.queries import hosts_for, hosts_with_numbers, version_of
from provisioner.sites.models import PerforceServer, Site
from provisioner.web.filters import FilterForm
from provisioner.web.forms import AskingForm, CodeInput, LinesField, NameField


class SandboxFilterForm(FilterForm):
    q = forms.CharField(required=False, max_length=100, label="Name or server")
    state = forms.ChoiceField(
        required=False, choices=[("", "All but retired"), *Sandbox.State.choices]
    )


class HostField(forms.ModelChoiceField[SandboxHost]):
    """Hosts, with how many of their places are taken, and whether a worker is there."""

    @cached_property
    def _alive(self) -> list[AliveWorker]:
        return alive_workers()

    def is_served(self, host: SandboxHost) -> bool:
        return not unserved([host.queue], self._alive)

    def label_from_instance(self, obj: Any) -> str:
        said = f"{obj.name}: {obj.number} of {obj.at_most} taken, at {obj.site}"
        return said if self.is_served(obj) else f"{said}, no worker reports"


class SandboxForm(AskingForm):
    """What somebody asks for, for as long as their policy allows."""

    server = forms.ModelChoiceField(
        PerforceServer.objects.filter(volumes__isnull=False).order_by("name"),
        to_field_name="name",
        label="A copy of",
    )
    name = NameField()
    purpose = forms.ChoiceField(
        choices=[each for each in Sandbox.Purpose.choices if each[0] != "drill"]
    )
    version = forms.ModelChoiceField(
        P4dVersion.objects.all(),
        to_field_name="release",
        empty_label=None,
        label="Version of p4d",
        help_text="Not older than the server's. A newer one upgrades the copy.",
    )
    host = HostField(hosts_with_numbers(), to_field_name="name", empty_label=None)
    hours = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_HOURS,
        initial=8,
        help_text="It is retired after this many hours.",
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        help_text="Such as a support case. It is in the audit log.",
    )
    port = forms.IntegerField(
        required=False,
        min_value=LOWEST_PORT,
        max_value=HIGHEST_PORT,
        help_text="Empty: the next free one of the host.",
    )
    server_id = forms.CharField(
        required=False,
        max_length=64,
        widget=CodeInput,
        label="ServerID",
        help_text="Empty: “sandbox-” and its name.",
    )

    def __init__(self, *args: Any, longest_hours: int = LONGEST_HOURS) -> None:
        super().__init__(*args)
        server = self.fields["server"]
        assert isinstance(server, forms.ModelChoiceField)
        servers = PerforceServer.objects.filter(volumes__isnull=False)[:2]
        if len(servers) == 1:
            server.empty_label = None
            self.fields["version"].initial = version_of(servers[0])
            host = self.fields["host"]
            assert isinstance(host, HostField)
            there = hosts_for(servers[0])
            host.initial = next(filter(host.is_served, there), there.first())
        hours = self.fields["hours"]
        hours.widget.attrs["max"] = longest_hours
        hours.initial = min(hours.initial, longest_hours)


class ExtendForm(AskingForm):
    hours = forms.IntegerField(
        min_value=1, max_value=LONGEST_HOURS, initial=8, label="Hours from now"
    )


class RetireForm(AskingForm):
    without_host = forms.BooleanField(
        required=False,
        label="Without its host",
        help_text="What ONTAP has is destroyed now. Processes and mounts on the host "
        "are ended when its worker is back.",
    )


class ServerVolumesForm(AskingForm):
    """Where a server's data is."""

    site = forms.ModelChoiceField(
        Site.objects.order_by("name"),
        to_field_name="name",
        empty_label=None,
        help_text="Whose SVM has the volumes.",
    )
    places = LinesField(
        rows=5,
        max_length=2000,
        label="Volumes",
        help_text="One a line: db, journal, log or depot, then VOLUME/PATH. A path of "
        "db or depot is a directory, of journal or log a file.",
    )

    @staticmethod
    def initial_of(volumes: ServerVolumes | None) -> dict[str, Any]:
        if volumes is None:
            return {"places": "db \njournal \ndepot "}
        lines = [place.line for place in volumes.places.all()]
        return {"site": volumes.site.name, "places": "\n".join(lines)}


class P4dVersionForm(AskingForm):
    release = forms.CharField(
        max_length=8, widget=CodeInput, help_text="Such as 2024.2."
    )
    path = forms.CharField(
        max_length=255,
        widget=CodeInput,
        label="Path of p4d",
        help_text="On every host of sandboxes. Cloneyard downloads none.",
    )


class SandboxHostForm(AskingForm):
    name = NameField(
        help_text="Its worker serves the queue of this name: --queues sandboxes.NAME."
    )
    site = forms.ModelChoiceField(
        Site.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    address = forms.CharField(
        max_length=255,
        initial="127.0.0.1",
        widget=CodeInput,
        help_text="Where its sandboxes answer. 127.0.0.1 lets nobody else in.",
    )
    first_port = forms.IntegerField(
        min_value=LOWEST_PORT, max_value=HIGHEST_PORT, initial=16660
    )
    at_most = forms.IntegerField(
        min_value=1, max_value=100, initial=5, label="Sandboxes at a time"
    )
    uid = forms.IntegerField(
        min_value=1, label="uid", help_text="Who runs p4d there. Never root."
    )
    gid = forms.IntegerField(min_value=1, label="gid")


class SandboxPolicyForm(AskingForm):
    team = forms.ModelChoiceField(
        Team.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    at_most = forms.IntegerField(
        min_value=1, max_value=100, initial=1, label="Sandboxes for each person"
    )
    team_at_most = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1000,
        label="Sandboxes for the team",
        help_text="All of its people together. Empty: no limit.",
    )
    longest_hours = forms.IntegerField(
        min_value=1, max_value=LONGEST_HOURS, initial=24, label="Hours at most"
    )


class PlanForm(AskingForm):
    """Where and when sandboxes of a server are made by a plan."""

    host = forms.ModelChoiceField(
        SandboxHost.objects.none(), to_field_name="name", empty_label=None
    )
    version = forms.ModelChoiceField(
        P4dVersion.objects.all(),
        to_field_name="release",
        empty_label=None,
        label="Version of p4d",
    )
    cron = forms.CharField(
        max_length=schedules.LONGEST,
        widget=CodeInput,
        label="When",
        help_text="As in cron, in UTC: minute, hour, day, month, day of the week.",
    )
    is_on = forms.BooleanField(
        required=False,
        label="Act by this plan",
        help_text="Off: only when somebody asks.",
    )
    elsewhere: ClassVar = False
    """Whether hosts at other sites than the server's are offered, or those at its."""

    def __init__(self, *args: Any, plan: SandboxPlan, **kwargs: Any) -> None:
        super().__init__(*args, initial=_initial_of(plan), **kwargs)
        host = self.fields["host"]
        assert isinstance(host, forms.ModelChoiceField)
        host.queryset = hosts_for(plan.server, elsewhere=self.elsewhere)


def _initial_of(plan: SandboxPlan) -> dict[str, Any]:
    """Return what the form of a plan begins with: rows, not their keys."""
    version = plan.version or version_of(plan.server)
    return vars(plan) | {"host": plan.host, "version": version}
