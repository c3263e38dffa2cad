"""Why an answer of the provider signs nobody in: sentences of pages."""

from __future__ import annotations

from provisioner.accounts.refusals import SignInRefused


class AnswerNotValid(SignInRefused):
    """The answer of {provider} is not valid here: {reason}. Begin again."""

    code = "provider_answer_not_valid"
