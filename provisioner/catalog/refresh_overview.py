"""What keeps templates from following submitted changes, for administrators."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q
from django.urls import reverse

from provisioner.catalog import freshness
from provisioner.catalog.models import ServerWatch
from provisioner.web.notices import Action, Level, Notice


@dataclass(frozen=True, kw_only=True)
class Refreshes:
    """The switch for everything, and the servers that are paused or do not answer."""

    is_paused: bool
    stopped: list[ServerWatch]

    @property
    def notices(self) -> list[Notice]:
        """What keeps templates from being refreshed."""
        said = "The refresh of all templates is paused."
        everything = [Notice(level=Level.WARNING, texts=(said,))]
        return [
            *(everything if self.is_paused else []),
            *(_stopped(watch) for watch in self.stopped),
        ]

    @property
    def actions(self) -> list[Action]:
        """The switch that pauses or resumes all refreshes."""
        verb = "resume" if self.is_paused else "pause"
        switch = Action(
            label=f"{verb.capitalize()} all",
            url=reverse("refresh-pause"),
            is_post=True,
            sends={"do": verb},
        )
        return [switch]


def _stopped(watch: ServerWatch) -> Notice:
    server = watch.server
    url = reverse("perforce-server-detail", args=[server.pk])
    why = "The refresh of its templates is paused."
    if not watch.is_paused:
        why = f"Perforce could not be polled for new changes. {watch.last_error}"
    return Notice(
        level=Level.WARNING,
        title=server.name,
        texts=(why,),
        actions=(Action(label=f"Show {server.name}", url=url),),
    )


def refreshes_now() -> Refreshes:
    """Return what stops refreshes now."""
    is_stopped = Q(is_paused=True) | ~Q(last_error="")
    watches = ServerWatch.objects.filter(is_stopped).select_related("server")
    return Refreshes(
        is_paused=freshness.is_everything_paused(),
        stopped=list(watches.order_by("server__name")),
    )
