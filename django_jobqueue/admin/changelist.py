"""The list's two queries: a count that stops early, and rows without the columns that may be huge."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import formats
from django.utils.functional import cached_property

from ..models import Job

#: Jobs are counted up to here, and pages end here: an exact count of a million rows takes its time.
COUNT_CAP = 10_000

#: The columns of a list's row.
LISTED = (
    "id",
    "job_type",
    "queue",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "run_after",
    "created_at",
    "run_started_at",
    "finished_at",
)


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Pages over the first ``COUNT_CAP`` rows of a query set."""

    @cached_property
    def found(self) -> int:
        """How many rows there are; one more than the cap says that there are more."""
        jobs: Any = self.object_list
        return int(jobs.order_by().values("pk")[: COUNT_CAP + 1].count())

    @cached_property
    def count(self) -> int:
        """How many rows the pages show."""
        return min(self.found, COUNT_CAP)

    @property
    def is_capped(self) -> bool:
        """Whether there are more than that."""
        return self.found > COUNT_CAP


class JobChangeList(ChangeList):
    """Django's, with the cap told and only ``LISTED`` columns asked for."""

    paginator: CappedPaginator

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Job]:
        """The jobs that all filters leave, as narrow rows; the actions work on these too."""
        jobs: QuerySet[Job] = super().get_queryset(request, exclude_parameters)
        return jobs.only(*LISTED)

    def get_results(self, request: HttpRequest) -> None:
        """The rows of this page."""
        super().get_results(request)
        # Said once, below the list and with its cap; not beside the search field too.
        self.full_result_count = self.result_count

    @property
    def is_capped(self) -> bool:
        """Whether more jobs match than the pages show."""
        return self.paginator.is_capped

    @property
    def shown_count(self) -> str:
        """How many jobs match: ``10,000+`` past the cap."""
        count = formats.number_format(self.result_count, force_grouping=True)
        return f"{count}+" if self.is_capped else count
