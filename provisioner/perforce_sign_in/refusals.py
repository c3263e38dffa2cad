"""Why Perforce signs somebody not in: sentences of pages."""

from __future__ import annotations

from provisioner.accounts.refusals import SignInRefused


class PerforceSilent(SignInRefused):
    """Perforce does not answer, so its passwords cannot be checked. Try again in a
    minute."""

    code = "perforce_silent"


class PerforceRefuses(SignInRefused):
    """Perforce could not look you up. Ask an administrator: the log of the web server
    says why."""

    code = "perforce_refuses"


class PasswordIsDue(SignInRefused):
    """Perforce wants a new password of you before anything else. Set one with p4
    passwd, then sign in here."""

    code = "perforce_password_is_due"


class SecondFactorMissing(SignInRefused):
    """Perforce asks you for a second factor, which cannot be given here. Ask an
    administrator for another way to sign in."""

    code = "perforce_second_factor"


class NoAccessThere(SignInRefused):
    """The protections of Perforce give you access to nothing. Ask whoever runs it."""

    code = "no_access_in_perforce"
