from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("testproject.readingroom.urls")),
    path("", include("testproject.outbox.urls")),
    path("admin/", admin.site.urls),
]
