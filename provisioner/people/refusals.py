"""Why something about sign-in, people and teams is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class TicketRefused(ActionRefused):
    """The Perforce server “{server}” does not take this as a ticket of {user} here. Ask
    for one that is good on all hosts: p4 login -a -p."""

    code = "ticket_refused"
    http_status = 401


class TicketsNotTaken(ActionRefused):
    """Ticket sign-in is disabled for the Perforce server “{server}”. An administrator
    can enable it there."""

    code = "tickets_not_taken"
    http_status = 403


class NoAccount(ActionRefused):
    """The Perforce user {user} has no account here, or more than one: ask an
    administrator."""

    code = "no_account"


class PerforceAway(ActionRefused):
    """The Perforce server “{server}” could not be asked. Try again later."""

    code = "perforce_away"


class NotYourself(ActionRefused):
    """You cannot change your own role: another administrator can."""

    code = "not_yourself"


class AccountExists(ActionRefused):
    """There already is an account “{name}”."""

    code = "account_exists"
    field = "username"


class NoMailGoesThere(ActionRefused):
    """No mail can be sent to {name}: it has no address, is closed, or there is no mail
    server."""

    code = "no_mail"


class TeamExists(ActionRefused):
    """There is a team “{name}” already."""

    code = "team_exists"
    field = "name"
