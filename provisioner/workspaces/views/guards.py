"""Access to pages that change a workspace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.core.exceptions import PermissionDenied
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from provisioner.web.http import P, WebRequest
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import workspaces_visible_to


def for_changing(
    view: Callable[Concatenate[WebRequest, Workspace, P], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Give a view the workspace `pk` of its URL.

    Answer with the 404 page if the person may not see it, with the 403 page if the
    person may see but not change it.
    """

    @wraps(view)
    def guarded(
        request: WebRequest, /, pk: int, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
        if not can_change_workspace(request.user, workspace):
            raise PermissionDenied(
                "You may view this workspace. Only its owner can change it."
            )
        return view(request, workspace, *args, **kwargs)

    return guarded
