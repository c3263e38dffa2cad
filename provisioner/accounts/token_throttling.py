"""Rate limits of tokens: for all requests, and for those for workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from provisioner.accounts.authentication import Throttled
from provisioner.accounts.models import ApiToken
from provisioner.accounts.throttling import TooManyRequests, count_use

if TYPE_CHECKING:  # its module reads the settings that name this one
    from rest_framework.views import APIView


class TokenThrottle(BaseThrottle):
    """Requests of any kind.

    Raises: Throttled, whose answer has Retry-After.
    """

    kind = "request"
    what = "requests"

    def allow_request(self, request: Request, view: APIView) -> bool:
        if isinstance(request.auth, ApiToken):
            try:
                count_use(
                    request.auth, kind=self.kind, what=self.what, allowed=self.allowed
                )
            except TooManyRequests as refusal:
                raise Throttled(refusal) from None
        return True

    @property
    def allowed(self) -> int:
        return int(settings.API_REQUESTS_PER_MINUTE)


class WorkspaceThrottle(TokenThrottle):
    """Requests for a workspace."""

    kind = "workspace"
    what = "new workspaces"

    @property
    def allowed(self) -> int:
        return int(settings.API_WORKSPACES_PER_MINUTE)
