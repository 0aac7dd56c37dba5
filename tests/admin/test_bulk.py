"""An action on all that match: asked first, carried out in steps, told, logged, each job moved once."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.admin import bulk, bulk_views
from django_jobqueue.models import Job, JobStatus
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, act, words
from tests.moves.factories import (
    TYPE,
    ago,
    claimed,
    dead,
    enqueue,
    seconds_from_now,
    selected,
    statuses,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
ALL_DEAD = f"status__exact={DEAD}"
JSON = {"headers": {"Accept": "application/json"}}


def many_dead(count: int, **options: Any) -> list[Job]:
    jobs = Job.objects.enqueue_many([(TYPE, {"n": n}) for n in range(count)], **options)
    # By hand: hundreds of failures would only fill the log.
    assert selected(*jobs).update(status=DEAD, finished_at=ago(60), error_fingerprint="boom") == count
    return jobs


def begin(client: Client, action: str, query: str, **data: Any) -> Any:
    return client.post(bulk_views.url(action, query), data, **JSON)


def carry_out(client: Client, action: str, query: str, **data: Any) -> list[dict[str, Any]]:
    """From the first step to the last; what each of them answered."""
    steps = [begin(client, action, query, **data).json()]
    while not steps[-1]["is_over"]:
        state = {"operation": steps[-1]["operation"]}
        steps.append(client.post(bulk_views.url(action, query), state, **JSON).json())
        assert len(steps) < 100
    return steps


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk of five jobs a request."""
    monkeypatch.setattr(bulk, "STEP", 0.0)
    monkeypatch.setattr(bulk, "CHUNK", 5)


def test_choosing_all_that_match_leads_to_a_page_that_asks(admin_client: Client) -> None:
    jobs = many_dead(3)
    response = act(admin_client, "retry_jobs", jobs[:1], select_across="1", query=f"?{ALL_DEAD}&q=tests")
    assert response.redirect_chain[0][0].endswith(f"/all/retry/?{ALL_DEAD}&q=tests")
    shown = words(response.content.decode())
    assert "3 jobs match now." in shown
    assert "status: dead" in shown
    assert "&quot;tests&quot;" in shown
    assert set(statuses(*jobs)) == {DEAD}
    assert not LogEntry.objects.exists()
    assert not INLINE.search(response.content.decode())


@pytest.mark.parametrize(
    ("action", "status", "becomes"),
    [("retry", DEAD, PENDING), ("cancel", PENDING, CANCELLED), ("discard", DEAD, None)],
)
def test_all_that_match_are_moved_and_the_others_are_not(
    admin_client: Client, action: str, status: JobStatus, becomes: JobStatus | None
) -> None:
    mine, other = many_dead(12, queue="mine"), many_dead(2, queue="other")
    selected(*mine, *other).update(status=status, finished_at=ago(1) if status is DEAD else None)
    last = carry_out(admin_client, action, f"status__exact={status}&queue=mine")[-1]
    assert last["is_over"]
    assert last["handled"] == last["total"] == 12
    assert set(selected(*mine).values_list("status", flat=True)) == ({becomes} - {None})
    assert statuses(*other) == [status] * 2


def test_what_waits_for_later_is_made_due_once_each(admin_client: Client, small_steps: None) -> None:
    jobs = [enqueue(run_after=timedelta(hours=n + 1), queue=f"q{n % 3}") for n in range(12)]
    steps = carry_out(admin_client, "run-now", "status__exact=1&due=later")
    assert steps[-1]["done"] == "12 jobs are due now."
    assert all(seconds_from_now(stored(job).run_after) <= 0 for job in jobs)


def test_it_goes_step_by_step_and_says_how_far_it_has_come(admin_client: Client, small_steps: None) -> None:
    many_dead(12)
    steps = carry_out(admin_client, "retry", ALL_DEAD)
    assert [step["handled"] for step in steps] == [5, 10, 12]
    assert [step["total"] for step in steps] == [12] * 3
    assert steps[-1]["done"] == "12 jobs run again."
    entry = LogEntry.objects.get()
    assert entry.change_message == "Retried: 12 jobs run again.; status: dead"


def test_without_a_script_a_button_goes_on(admin_client: Client, small_steps: None) -> None:
    many_dead(7)
    address = bulk_views.url("retry", ALL_DEAD)
    html = admin_client.post(address, {}).content.decode()
    assert "5 jobs run again." in words(html)
    state = re.search(r'name="operation" value="([^"]+)"', html)
    assert state
    html = admin_client.post(address, {"operation": state[1]}).content.decode()
    assert "7 jobs run again." in words(html)
    assert not INLINE.search(html)


def test_a_speed_spreads_the_whole_operation_over_time(admin_client: Client, small_steps: None) -> None:
    jobs = many_dead(12)
    carry_out(admin_client, "retry", ALL_DEAD, per_minute="30")
    waits = sorted(seconds_from_now(stored(job).run_after) for job in jobs)
    assert waits == pytest.approx([2 * n for n in range(12)], abs=3)
    assert waits[-1] - waits[0] == pytest.approx(22, abs=2)


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "1e400"])
def test_a_speed_that_is_none_is_refused_before_anything_is_moved(admin_client: Client, speed: str) -> None:
    jobs = many_dead(2)
    response = begin(admin_client, "retry", ALL_DEAD, per_minute=speed)
    assert "errorlist" in response.content.decode()
    assert statuses(*jobs) == [DEAD] * 2


def test_those_that_die_again_meanwhile_are_not_retried_again(
    admin_client: Client, small_steps: None
) -> None:
    jobs = many_dead(7)
    first = begin(admin_client, "retry", ALL_DEAD).json()
    selected(*jobs).filter(status=PENDING).update(status=DEAD, finished_at=ago(-1))
    later = many_dead(1)
    selected(*later).update(finished_at=ago(-2), created_at=ago(-2))
    last = admin_client.post(
        bulk_views.url("retry", ALL_DEAD), {"operation": first["operation"]}, **JSON
    ).json()
    assert (last["handled"], last["is_over"]) == (7, True)
    assert statuses(*later) == [DEAD]


def test_refused_jobs_are_passed_over_counted_and_told_with_the_reason(
    admin_client: Client, small_steps: None
) -> None:
    """500 dead jobs, 50 of them with a key that another job has by now, and 10 that are running."""
    jobs = many_dead(50, queue="ours")
    colliding, fine = jobs[::10], [job for n, job in enumerate(jobs) if n % 10]
    for n, job in enumerate(colliding):
        write(job, dedupe_key=f"k-{n}")
        assert enqueue(dedupe_key=f"k-{n}", queue="rival").created
    running = [claimed() for _ in range(3)]
    selected(*running).update(queue="ours")

    last = carry_out(admin_client, "retry", "queue=ours")[-1]

    assert last["done"] == "45 jobs run again."
    assert last["refused"] == "5 refused: another active job has its dedupe key; 3 refused: is running"
    assert set(statuses(*colliding)) == {DEAD}
    assert set(statuses(*fine)) == {PENDING}
    assert last["refused"] in LogEntry.objects.get().change_message


def test_two_people_at_once_move_each_job_once_and_the_second_is_told(
    admin_client: Client, person: Person, small_steps: None
) -> None:
    jobs = many_dead(12, queue="mine")
    other = person("view_job", "retry_job")
    first = begin(admin_client, "retry", "queue=mine").json()
    second = carry_out(other, "retry", "queue=mine")[-1]
    state = {"operation": first["operation"]}
    while state["operation"]:
        answer = admin_client.post(bulk_views.url("retry", "queue=mine"), state, **JSON).json()
        state = {"operation": answer["operation"]}
    assert second["done"] == "7 jobs run again."
    assert second["refused"] == "5 refused: is pending"
    assert answer["done"] == "5 jobs run again."
    assert answer["refused"] == "7 refused: is pending"
    assert set(statuses(*jobs)) == {PENDING}


def test_what_no_index_serves_is_looked_for_in_bounded_pieces(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, small_steps: None
) -> None:
    wanted = [enqueue(queue="mine" if n % 10 == 0 else "other") for n in range(30)]
    monkeypatch.setattr(bulk, "LOOK", 4)
    with CaptureQueriesContext(connection) as captured:
        last = carry_out(admin_client, "cancel", "queue=mine")[-1]
    assert last["done"].startswith("3 jobs are cancelled")
    assert last["total"] is None
    assert [job.queue for job in wanted if stored(job).status == CANCELLED] == ["mine"] * 3
    read = [one["sql"] for one in captured if one["sql"].startswith('SELECT "django_jobqueue_job"')]
    assert [sql for sql in read if "LIMIT" not in sql and " IN (" not in sql] == []


@pytest.mark.parametrize(
    ("action", "codename"),
    [("retry", "retry_job"), ("run-now", "run_job_now"), ("cancel", "cancel_job"), ("discard", "delete_job")],
)
def test_each_action_takes_its_own_permission(person: Person, action: str, codename: str) -> None:
    job = dead()
    others = {"retry_job", "run_job_now", "cancel_job", "delete_job"} - {codename}
    client = person("view_job", *others)
    address = bulk_views.url(action, ALL_DEAD)
    assert [client.get(address).status_code, client.post(address).status_code] == [403, 403]
    assert stored(job).status == DEAD
    User.objects.all().delete()
    assert person("view_job", codename).get(address).status_code == 200


def test_only_actions_for_many_have_such_a_page(admin_client: Client) -> None:
    assert admin_client.get("/admin/django_jobqueue/job/all/snooze/").status_code == 404
    assert admin_client.get("/admin/django_jobqueue/job/all/nonsense/").status_code == 404


def test_a_state_of_somebody_else_of_another_action_or_made_up_is_refused(
    admin_client: Client, person: Person, small_steps: None
) -> None:
    jobs = many_dead(12)
    state = {"operation": begin(admin_client, "retry", ALL_DEAD).json()["operation"]}
    client = person("view_job", "retry_job", "delete_job")
    before = statuses(*jobs)
    for address, operation in [
        (bulk_views.url("retry", ALL_DEAD), state["operation"]),
        (bulk_views.url("discard", ALL_DEAD), state["operation"]),
        (bulk_views.url("retry", ALL_DEAD), "made-up"),
        (bulk_views.url("retry", ALL_DEAD), signing.dumps({"action": "retry"})),
    ]:
        assert client.post(address, {"operation": operation}).status_code == 302
    assert admin_client.post(bulk_views.url("retry", ""), state).status_code == 403
    assert statuses(*jobs) == before


def test_a_forged_post_without_the_token_is_refused(admin_user: Any) -> None:
    job = dead()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    assert strict.post(bulk_views.url("retry", ALL_DEAD)).status_code == 403
    assert stored(job).status == DEAD


def test_a_filter_that_cannot_be_read_moves_nothing(admin_client: Client) -> None:
    job = enqueue()
    query = "created_at__range__gte_0=yesterday"
    assert begin(admin_client, "cancel", query).status_code == 302
    assert stored(job).status == PENDING
