"""@job: a function stays a function, and knows how to be enqueued."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone, translation
from pytest_django import Settings

from django_jobqueue import Retry, job, registry
from django_jobqueue.exceptions import InvalidOption, InvalidPayload
from django_jobqueue.handlers import Handler, JobContext
from django_jobqueue.models import Job
from tests.moves.threads import run_async


@pytest.fixture
def report() -> Iterator[Any]:
    """A registered handler, forgotten after the test."""

    @job(
        "tests:report",
        queue="reports",
        priority=5,
        max_attempts=7,
        dedupe_key=lambda report_id, **rest: f"report-{report_id}",
        lock_key="printer",
    )
    def generate(report_id: int, format: str = "csv") -> str:
        """Make it."""
        return f"{report_id}.{format}"

    yield generate
    registry.unregister("tests:report")


@pytest.fixture
def define() -> Iterator[Callable[..., Any]]:
    """``@job`` for one test."""
    names: list[str] = []

    def decorator(name: str, **options: Any) -> Any:
        names.append(name)
        return job(name, **options)

    yield decorator
    for name in names:
        registry.unregister(name)


def test_a_handler_is_called_as_the_function_it_is(report: Any) -> None:
    assert report(7, format="json") == "7.json"
    assert (report.__name__, report.__doc__) == ("generate", "Make it.")
    assert repr(report) == "<Handler of 'tests:report'>"


def test_a_decorated_function_is_registered(report: Any) -> None:
    assert registry.find("tests:report") is report.job_type
    assert report.job_type.function is report.function


def test_a_name_for_two_functions_is_refused(report: Any) -> None:
    with pytest.raises(InvalidOption, match="Two handlers"):
        job("tests:report")(lambda: None)


def test_every_option_reaches_the_type(define: Callable[..., Any]) -> None:
    retry = Retry(base=9)
    options: dict[str, Any] = {
        "queue": "q",
        "priority": -3,
        "max_attempts": 2,
        "retry": retry,
        "dedupe_key": "d",
        "lock_key": "l",
        "atomic": True,
        "takes_context": True,
    }
    handler = define("tests:all", never_retry=[KeyError], **options)(lambda context: None)
    job_type = handler.job_type
    assert {name: getattr(job_type, name) for name in options} == options
    assert job_type.never_retry == (KeyError,)


def test_words_that_nobody_knows_are_refused(define: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="backoff"):
        define("tests:later", backoff=5)(lambda: None)


@pytest.mark.django_db
def test_a_job_gets_what_its_type_says(report: Any) -> None:
    made = report.enqueue(7)
    fresh = Job.objects.get()
    assert made == fresh
    assert made.created is True
    assert (fresh.job_type, fresh.queue, fresh.priority, fresh.max_attempts) == (
        "tests:report",
        "reports",
        5,
        7,
    )
    assert (fresh.dedupe_key, fresh.lock_key, fresh.payload) == ("report-7", "printer", {"report_id": 7})


@pytest.mark.django_db
def test_using_says_otherwise_for_one_call(report: Any) -> None:
    call = report.using(priority=10, queue="fast").using(priority=11, dedupe_key="mine", max_attempts=1)
    made = call.enqueue(report_id=7, format="json")
    assert (made.priority, made.queue, made.dedupe_key, made.max_attempts) == (11, "fast", "mine", 1)
    assert made.payload == {"report_id": 7, "format": "json"}
    assert report.enqueue(8).priority == 5


@pytest.mark.django_db
def test_an_unknown_option_is_refused(report: Any) -> None:
    with pytest.raises(InvalidOption, match="no option 'prio'"):
        report.using(prio=10).enqueue(7)
    assert not Job.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1})], ids=str)
def test_arguments_the_function_could_not_take_are_refused_at_the_call(
    report: Any, args: Any, kwargs: Any
) -> None:
    with pytest.raises(InvalidPayload, match="does not fit the handler of 'tests:report'"):
        report.enqueue(*args, **kwargs)
    with pytest.raises(InvalidPayload):
        Job.objects.enqueue("tests:report", {"x": 1})
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_many_jobs_of_one_handler_keep_their_order(report: Any) -> None:
    made = report.using(lock_key="other").enqueue_many({"report_id": n} for n in (3, 1, 2, 3))
    assert [one.payload["report_id"] for one in made] == [3, 1, 2, 3]
    assert [one.created for one in made] == [True, True, True, False]
    assert {one.lock_key for one in made} == {"other"}
    assert [one.created for one in report.enqueue_many([{"report_id": 4}, {"report_id": 1}])] == [True, False]


@pytest.mark.django_db
def test_a_key_function_may_say_that_there_is_no_key(define: Callable[..., Any]) -> None:
    handler = define("tests:keyless", dedupe_key=lambda a: None, lock_key=lambda a: f"lock-{a}")(
        lambda a: None
    )
    first, second = handler.enqueue(1), handler.enqueue(1)
    assert first != second
    assert (first.dedupe_key, first.lock_key) == (None, "lock-1")


@pytest.mark.django_db
@pytest.mark.parametrize("key", [5, "", "x" * 201, b"k"], ids=repr)
def test_a_key_function_that_answers_nonsense_is_refused(define: Callable[..., Any], key: Any) -> None:
    handler = define("tests:nonsense", dedupe_key=lambda: key)(lambda: None)
    with pytest.raises(InvalidOption, match="dedupe_key="):
        handler.enqueue()
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_a_key_function_sees_the_defaults_of_the_handler(define: Callable[..., Any]) -> None:
    def handler(report_id: int, format: str = "csv") -> None: ...

    made = define("tests:defaults", dedupe_key=lambda report_id, format: f"{report_id}-{format}")(handler)
    assert made.enqueue(7).dedupe_key == "7-csv"


@pytest.mark.django_db
def test_the_site_says_how_often_where_the_type_does_not(
    define: Callable[..., Any], settings: Settings
) -> None:
    handler = define("tests:plain")(lambda: None)
    settings.JOBQUEUE = {"MAX_ATTEMPTS": 9}
    assert handler.enqueue().max_attempts == 9


@pytest.mark.django_db
def test_a_delay_may_be_given_for_one_call(report: Any) -> None:
    made = report.using(run_after=timedelta(minutes=5)).enqueue(7)
    assert timedelta(minutes=4) < made.run_after - timezone.now() < timedelta(minutes=6)


@pytest.mark.django_db(transaction=True)
def test_async_code_enqueues_as_well(report: Any) -> None:
    async def enqueue_four() -> list[Job]:
        many = await report.aenqueue_many([{"report_id": 3}, {"report_id": 4}])
        return [
            await report.aenqueue(1),
            await report.using(priority=9).aenqueue(2),
            *many,
            *await report.using(priority=8).aenqueue_many([{"report_id": 5}]),
        ]

    made = run_async(enqueue_four())
    assert [one.payload["report_id"] for one in made] == [1, 2, 3, 4, 5]
    assert [one.priority for one in made] == [5, 9, 5, 5, 8]
    assert Job.objects.count() == 5


def test_a_method_of_the_handler_is_typed_by_its_function(report: Any) -> None:
    assert isinstance(report, Handler)


@pytest.mark.django_db
def test_the_language_and_the_zone_of_the_caller_travel_with_the_job(report: Any) -> None:
    with translation.override("de"), timezone.override("America/Lima"):
        made = report.enqueue(7)
    assert made.context == Job.objects.get().context == {"language": "de", "time_zone": "America/Lima"}


@pytest.mark.django_db
def test_the_sites_own_language_and_zone_need_not_travel(report: Any) -> None:
    assert report.enqueue(7).context == {}


class Reports:
    """Collects what a context reports."""

    def __init__(self) -> None:
        self.got: list[tuple[float | None, str]] = []
        self.cancelled = False
        self.context = JobContext(
            SimpleNamespace(attempts=2),
            lambda share, note: self.got.append((share, note)),
            lambda: self.cancelled,
        )


def test_a_context_knows_its_attempt_and_whether_to_stop() -> None:
    reports = Reports()
    assert reports.context.attempt == 2
    assert reports.context.cancelled is False
    reports.cancelled = True
    assert reports.context.cancelled is True


@pytest.mark.parametrize(
    ("arguments", "share"),
    [((0.25,), 0.25), ((3, 4), 0.75), ((5, 4), 1.0), ((-1, 4), 0.0), ((1, 0), 0.0), ((4, 4), 1.0)],
)
def test_progress_is_a_share_from_nothing_to_all(arguments: Any, share: float) -> None:
    reports = Reports()
    reports.context.progress(*arguments, note="there")
    assert reports.got == [(share, "there")]


def test_progress_that_is_no_number_is_no_share_that_could_be_stored() -> None:
    reports = Reports()
    reports.context.progress(float("nan"), 3)
    [(share, _)] = reports.got
    assert share is None or 0 <= share <= 1


def test_tracking_reports_before_each_item_and_at_the_end() -> None:
    reports = Reports()
    assert list(reports.context.track("abcd", note="letters")) == list("abcd")
    assert reports.got == [(share, "letters") for share in (0, 0.25, 0.5, 0.75, 1)]


def test_tracking_something_without_a_length_reports_no_share() -> None:
    reports = Reports()
    assert list(reports.context.track(iter("ab"))) == ["a", "b"]
    assert reports.got == [(None, ""), (None, ""), (1, "")]


def test_tracking_more_than_the_total_stays_at_all() -> None:
    reports = Reports()
    list(reports.context.track(iter("abc"), total=2))
    assert [share for share, _ in reports.got] == [0, 0.5, 1, 1]
