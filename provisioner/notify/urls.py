"""URLs of notifications."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.notify import views
from provisioner.notify.api.views import (
    DeliveryViewSet,
    NotificationChoiceViewSet,
    SubscriptionViewSet,
    WebhookViewSet,
)
from provisioner.notify.lists import WEBHOOKS
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, register

register(
    Place(
        title="Notifications",
        section=Section.ACCOUNT,
        url_name="my-notifications",
        rank=35,
    ),
    Place(
        title="Webhooks",
        section=Section.ACCOUNT,
        url_name="webhook-list",
        covers=("webhook-",),
        rank=40,
    ),
)

_of_a_webhook = [
    path("", views.webhook_detail, name="webhook-detail"),
    path("edit/", views.webhook_edit, name="webhook-edit"),
    path("switch/", views.webhook_switch, name="webhook-switch"),
    path("test/", views.webhook_test, name="webhook-test"),
    path("secret/", views.webhook_secret, name="webhook-secret"),
    path("delete/", views.webhook_delete, name="webhook-delete"),
    path(
        "deliveries/<int:delivery_pk>/again/", views.webhook_again, name="webhook-again"
    ),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "templates/<int:pk>/mails/", views.template_subscribe, name="template-subscribe"
    ),
    path("me/notifications/", views.my_notifications, name="my-notifications"),
    path("webhooks/", list_page(WEBHOOKS, "notify/list.html"), name="webhook-list"),
    path("webhooks/new/", views.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", include(_of_a_webhook)),
]

api_routes = [
    Route("v1/templates", SubscriptionViewSet, "template-mails"),
    Route("v1/notifications", NotificationChoiceViewSet, "notification"),
    Route("v1/webhooks", WebhookViewSet, "webhook"),
    Route(
        "v1/webhooks/<int:webhook_pk>/deliveries", DeliveryViewSet, "webhook-delivery"
    ),
]
