from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [path("webhook/<slug:receiver>/", views.webhook, name="webhook")]
