"""The moves live on Django's own classes, so their names must not be Django's."""

from __future__ import annotations

import pytest
from django.db.models import Manager, QuerySet

from django_jobqueue.managers import JobManager, JobQuerySet
from django_jobqueue.models import Job

MEANT = {"db", "get_queryset"}


@pytest.mark.parametrize(("ours", "django"), [(JobQuerySet, QuerySet), (JobManager, Manager)])
def test_no_move_hides_a_method_of_django(ours: type, django: type) -> None:
    hidden = {
        f"{part.__name__}.{name}"
        for part in ours.__mro__
        if part.__module__.startswith("django_jobqueue")
        for name in vars(part)
        if hasattr(django, name) and not name.startswith("__") and name not in MEANT
    }
    assert hidden == set()


@pytest.mark.django_db
def test_a_job_made_by_create_is_due_at_once() -> None:
    job = Job.objects.create(job_type="moves:noop")
    assert [one.pk for one in Job.objects.claim(worker_id="w")] == [job.pk]
