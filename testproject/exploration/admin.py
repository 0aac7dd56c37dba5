from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from .models import Document, ExplorationSession


@admin.register(ExplorationSession)
class ExplorationSessionAdmin(admin.ModelAdmin):
    list_display = ["id", "root", "created_at"]
    date_hierarchy = "created_at"


@admin.register(Document)
class DocumentAdmin(admin.ModelAdmin):
    list_display = ["path", "title", "kind", "package", "lines", "words", "definitions", "headings", "links"]
    list_filter = ["kind", "session"]
    list_select_related = ["session"]
    search_fields = ["path", "title"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        """Without the big columns."""
        return super().get_queryset(request).defer("text", "outline", "urls")
