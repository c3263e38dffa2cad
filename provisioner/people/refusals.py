"""Refusals about sign-in, people and teams."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class TicketRefused(ActionRefused):
    """The Perforce server “{server}” does not accept this as a ticket of {user} here.
    Use one that is valid on all hosts: p4 login -a -p.
    """

    code = "ticket_refused"
    http_status = 401


class TicketsNotTaken(ActionRefused):
    """Ticket sign-in is disabled for the Perforce server “{server}”. An administrator
    can enable it there."""

    code = "tickets_not_taken"
    http_status = 403


class NoAccount(ActionRefused):
    """The Perforce user {user} has no account here, or more than one. Ask an
    administrator.
    """

    code = "no_account"


class PerforceAway(ActionRefused):
    """The Perforce server “{server}” did not answer. Try again later."""

    code = "perforce_away"


class NotYourself(ActionRefused):
    """You cannot change your own role. Ask another administrator."""

    code = "not_yourself"


class AccountExists(ActionRefused):
    """An account “{name}” already exists."""

    code = "account_exists"
    field = "username"


class NoMailGoesThere(ActionRefused):
    """No mail can be sent to {name}: it has no address, is closed, or no mail
    server is configured.
    """

    code = "no_mail"


class PasswordIsElsewhere(ActionRefused):
    """The password of {name} is that of {provider}, and is changed there."""

    code = "password_elsewhere"


class TeamExists(ActionRefused):
    """A team “{name}” already exists."""

    code = "team_exists"
    field = "name"
