"""URLs of people."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.people.api import TokenViewSet
from provisioner.people.lists import EVERYBODYS_TOKENS, PEOPLE, SESSIONS, TEAMS
from provisioner.people.views import people, sessions, sign_in, tokens
from provisioner.people.views.theme import theme
from provisioner.web.http import administrators_only
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="People",
        section=Section.PEOPLE,
        url_name="person-list",
        covers=("person-",),
        rank=10,
        is_for=administrators,
    ),
    Place(
        title="Teams",
        section=Section.PEOPLE,
        url_name="team-list",
        covers=("team-",),
        rank=20,
        is_for=administrators,
    ),
    Place(
        title="API tokens",
        section=Section.PEOPLE,
        url_name="token-everybody-list",
        rank=30,
        is_for=administrators,
    ),
    Place(
        title="Account",
        section=Section.ACCOUNT,
        url_name="my-account",
        covers=("my-", "logout"),
        rank=10,
    ),
    Place(title="Password", section=Section.ACCOUNT, url_name="my-password", rank=20),
    Place(
        title="Sessions",
        section=Section.ACCOUNT,
        url_name="my-session-list",
        rank=25,
    ),
    Place(
        title="API tokens",
        section=Section.ACCOUNT,
        url_name="token-list",
        covers=("token-",),
        rank=30,
    ),
)

urlpatterns: list[URLPattern] = [
    path("login/", sign_in.SignInView.as_view(), name="login"),
    path("password/forgotten/", sign_in.password_forgotten, name="password-forgotten"),
    path(
        "password/new/<uidb64>/<token>/",
        sign_in.PasswordNewView.as_view(),
        name="password-new",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("theme/", theme, name="theme"),
    path("me/", sign_in.my_account, name="my-account"),
    path("me/password/", sign_in.my_password, name="my-password"),
    path(
        "me/sessions/",
        list_page(SESSIONS, "people/sessions.html"),
        name="my-session-list",
    ),
    path(
        "me/sessions/end-others/",
        sessions.my_sessions_end_others,
        name="my-sessions-end-others",
    ),
    path("me/sessions/<name>/end/", sessions.my_session_end, name="my-session-end"),
    path("tokens/", tokens.token_list, name="token-list"),
    path(
        "tokens/everybody/",
        administrators_only(
            list_page(EVERYBODYS_TOKENS, "people/tokens_everybody.html")
        ),
        name="token-everybody-list",
    ),
    path("tokens/<prefix>/revoke/", tokens.token_revoke, name="token-revoke"),
    path(
        "people/",
        administrators_only(list_page(PEOPLE, "people/list.html")),
        name="person-list",
    ),
    path("people/new/", people.person_create, name="person-create"),
    path("people/<int:pk>/password/", people.person_password, name="person-password"),
    path(
        "people/<int:pk>/sessions/end/",
        sessions.person_sessions_end,
        name="person-sessions-end",
    ),
    path(
        "people/<int:pk>/sessions/<name>/end/",
        sessions.person_session_end,
        name="person-session-end",
    ),
    path("people/<int:pk>/close/", people.person_close, name="person-close"),
    path("people/<int:pk>/reopen/", people.person_reopen, name="person-reopen"),
    path("people/<int:pk>/", people.person_detail, name="person-detail"),
    path("people/<int:pk>/edit/", people.person_edit, name="person-edit"),
    path(
        "teams/",
        administrators_only(list_page(TEAMS, "people/teams.html")),
        name="team-list",
    ),
    path("teams/new/", people.team_create, name="team-create"),
    path("teams/<int:pk>/edit/", people.team_edit, name="team-edit"),
]

api_routes = [Route("v1/tokens", TokenViewSet, "token")]
