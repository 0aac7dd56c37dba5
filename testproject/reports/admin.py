from __future__ import annotations

from django.contrib import admin

from .models import Report


@admin.register(Report)
class ReportAdmin(admin.ModelAdmin):
    list_display = ["id", "format", "filters", "file", "created_at", "made_at"]
    list_filter = ["format"]
