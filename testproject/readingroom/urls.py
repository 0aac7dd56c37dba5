from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("", views.index, name="index"),
    path("explore/", views.explore, name="explore"),
    path("search/", views.search, name="search"),
    path("search/<uuid:job_id>/", views.search_result, name="search-result"),
    path("reports/", views.request_report, name="request-report"),
    path("reports/<int:report_id>/", views.report_file, name="report-file"),
    path("documents/<int:document_id>/", views.document, name="document"),
]
