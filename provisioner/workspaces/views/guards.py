"""Access to pages that change a workspace."""

from __future__ import annotations

from functools import wraps

from django.core.exceptions import PermissionDenied
from django.http.response import HttpResponseBase

from provisioner.web.http import P, View, WebRequest
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import workspaces_visible_to


def for_changing(view: View[P]) -> View[P]:
    """Answer with the 403 page if the person may see the workspace but not change it.

    Without access the view itself answers 404.
    """

    @wraps(view)
    def guarded(
        request: WebRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        workspaces = workspaces_visible_to(request.user)
        workspace = workspaces.filter(pk=str(kwargs["pk"])).first()
        if workspace is not None and not can_change_workspace(request.user, workspace):
            raise PermissionDenied(
                "You may view this workspace. Only its owner can change it."
            )
        return view(request, *args, **kwargs)

    return guarded
