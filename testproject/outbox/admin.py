from __future__ import annotations

from django.contrib import admin

from .models import Delivery, OutboxMessage


@admin.register(OutboxMessage)
class OutboxMessageAdmin(admin.ModelAdmin):
    list_display = ["event", "url", "report", "created_at", "delivered_at"]
    list_filter = ["event"]
    list_select_related = ["report"]


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin):
    list_display = ["key", "receiver", "received_at", "repeats"]
    list_filter = ["receiver"]
