"""Pages of sessions: my own, and for administrators those of a person."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from provisioner.accounts.models import Session, User
from provisioner.people.actions.sessions import (
    session_end,
    sessions_end_all,
    sessions_end_others,
)
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.posting import acted


@require_POST
def my_session_end(request: WebRequest, name: str) -> HttpResponse:
    """End one of my sessions."""
    session = get_object_or_404(request.user.sessions, name=name)
    act = partial(session_end, by=request.user, session=session)
    return acted(request, act, "my-session-list", said="The session has ended.")


@require_POST
def my_sessions_end_others(request: WebRequest) -> HttpResponse:
    """End all my sessions but this one."""
    key = request.session.session_key
    act = partial(sessions_end_others, by=request.user, but=key)
    said = "All other sessions have ended."
    return acted(request, act, "my-session-list", said=said)


@require_POST
@administrators_only
def person_session_end(request: WebRequest, pk: int, name: str) -> HttpResponse:
    """End a session of a person."""
    session = get_object_or_404(Session, account=pk, name=name)
    act = partial(session_end, by=request.user, session=session)
    return acted(request, act, "person-detail", pk, said="The session has ended.")


@require_POST
@administrators_only
def person_sessions_end(request: WebRequest, pk: int) -> HttpResponse:
    """End all sessions of a person."""
    account = get_object_or_404(User, pk=pk)
    act = partial(sessions_end_all, by=request.user, account=account)
    return acted(request, act, "person-detail", pk, said="All sessions have ended.")
