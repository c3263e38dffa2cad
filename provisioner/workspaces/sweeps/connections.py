"""Looking at sites and Perforce servers from where their workers run."""

from __future__ import annotations

from procrastinate.contrib.django import app

from provisioner.workspaces import connections
from provisioner.workspaces.connections.rows import LOOK, Place
from provisioner.workspaces.models import PerforceServer, Site


@app.task(name=LOOK)
def look_at_connection(kind: str, about_id: int, place: str) -> None:
    """Look once, and write down what was found; a failure is that, too."""
    if kind == "server":
        server = PerforceServer.objects.filter(pk=about_id).first()
        if server is not None:
            connections.keep(server, place, connections.reach_perforce(server))
        return
    site = Site.objects.select_related("perforce_server").filter(pk=about_id).first()
    if site is None:
        return
    if place == Place.WORKER:
        connections.keep(site, place, connections.reach_ontap(site))
        return
    look = connections.try_out if place == Place.TRIAL else connections.look_from_host
    connections.keep(site, place, look(site))
