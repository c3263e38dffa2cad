"""Mails to choose a password, and the deletion of expired sessions."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMessage
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from provisioner.accounts.models import Session, User
from provisioner.people.actions.passwords import MAIL_TASK

SENT_AGAIN = RetryStrategy(max_attempts=5, wait=30)


@app.periodic(cron="41 * * * *")
@app.task(name="sweep_sessions", queue="sweeps", queueing_lock="sweep_sessions")
def sweep_sessions(timestamp: int) -> None:
    """Delete sessions that have expired, by the database's clock."""
    Session.objects.filter(expire_date__lt=Now()).delete()


@app.task(name=MAIL_TASK, queue="sweeps", retry=SENT_AGAIN)
def send_password_mail(account_id: int) -> None:
    """Send the mail; its link is made here, so that no job contains one.

    The link leads to PUBLIC_URL, whatever host the request named.
    """
    account = User.objects.filter(pk=account_id, is_active=True).first()
    if account is None or not account.email:
        return
    uid = urlsafe_base64_encode(force_bytes(account.pk))
    path = reverse(
        "password-new", args=[uid, default_token_generator.make_token(account)]
    )
    subject, _, text = render_to_string(
        "people/mails/password.txt",
        {
            "account": account,
            "url": f"{settings.PUBLIC_URL.rstrip('/')}{path}",
            "days": settings.PASSWORD_RESET_TIMEOUT // 86_400,
        },
    ).partition("\n")
    EmailMessage(
        subject=subject.removeprefix("Subject:").strip(),
        body=text.strip() + "\n",
        to=[account.email],
    ).send()
