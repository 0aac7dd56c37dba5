"""``JOBQUEUE["REDACT"]``: what nobody should read is in no page, no log line and no stored error."""

import logging
from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue import conf, logs
from django_jobqueue.managers.failures import describe
from django_jobqueue.models import Job
from django_jobqueue.redaction import HIDDEN, redact, redact_text, restore
from tests.moves.factories import claimed, stored


@pytest.fixture(autouse=True)
def hidden_keys(settings: Settings) -> None:
    settings.JOBQUEUE = {"REDACT": ["password", "api-key"], "EXTERNAL_TYPES": ["tests:*"]}


def test_what_stands_under_a_hidden_key_is_hidden_at_any_depth_and_in_any_case() -> None:
    value = {"user": "ada", "Password": "x", "list": [{"API-KEY": {"a": 1}}, "password"], "n": None}
    assert redact(value) == {
        "user": "ada",
        "Password": HIDDEN,
        "list": [{"API-KEY": HIDDEN}, "password"],
        "n": None,
    }
    assert value["Password"] == "x"


def test_without_the_setting_everything_is_as_it_was(settings: Settings) -> None:
    settings.JOBQUEUE = {}
    value = {"password": "hunter22"}
    assert redact(value) is value
    assert redact_text("password=hunter22", value) == "password=hunter22"


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter22",
        "password = 'hunter22'",
        "{'user': 'ada', 'password': 'hunter22', 'n': 1}",
        '{"PASSWORD":"hunter22"}',
        "login(password='hun\\'ter22', again=True)",
        "https://example.org/?api-key=hunter22&page=2",
    ],
)
def test_in_text_a_value_beside_its_key_is_hidden(text: str) -> None:
    shown = redact_text(text)
    assert HIDDEN in shown
    assert "ter22" not in shown


@pytest.mark.parametrize("text", ["the password was wrong", "passwords=3", "no-password=yes", ""])
def test_text_without_a_hidden_value_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


def test_a_value_of_the_payload_is_hidden_wherever_it_turns_up() -> None:
    payload = {"password": {"old": "hunter22", "new": ["hunter222", 123456]}, "user": "ada-lovelace"}
    text = "cannot use hunter222 or hunter22 or 123456 for ada-lovelace"
    assert redact_text(text, payload) == f"cannot use {HIDDEN} or {HIDDEN} or {HIDDEN} for ada-lovelace"


def test_a_value_too_short_to_be_told_from_words_is_only_hidden_beside_its_key() -> None:
    assert redact_text("an error, password=err", {"password": "err"}) == f"an error, password={HIDDEN}"


def test_a_hidden_value_is_put_back_where_nobody_replaced_it() -> None:
    original = {"password": "old", "list": [{"password": "a"}, {"password": "b"}], "n": 1}
    edited = redact(original) | {"n": 2}
    assert restore(edited, original) == original | {"n": 2}
    assert restore({"password": "new", "more": [HIDDEN]}, original) == {"password": "new", "more": [HIDDEN]}


@pytest.mark.django_db
def test_neither_the_row_nor_the_log_has_the_value(caplog: pytest.LogCaptureFixture) -> None:
    job = claimed(payload={"password": "hunter22"})
    try:
        password = job.payload["password"]
        raise ValueError(f"{password} is too weak, password={password!r}")
    except ValueError as error:
        Job.objects.fail(job, error, delay=None)
    row = stored(job)
    assert row.last_error == f"ValueError: {HIDDEN} is too weak, password={HIDDEN}"
    assert "hunter22" not in str(row.errors)
    assert "hunter22" not in caplog.text
    assert HIDDEN in caplog.text
    assert row.payload == {"password": "hunter22"}


def test_a_log_line_and_its_traceback_hide_what_stands_beside_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job: Any = type("OneJob", (), {"job_type": "tests:any", "id": 1})
    try:
        raise ValueError("password=hunter22")
    except ValueError as error:
        logs.retry_rule_failed(job)
        logs.outcome_refused(job, error)
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert "hunter22" not in logging.Formatter().format(record)


def test_an_error_is_described_whatever_its_job_has_no_payload_of() -> None:
    assert describe(ValueError("password=hunter22")).text == f"ValueError: password={HIDDEN}"


@pytest.mark.parametrize("value", ["password", [""], [7], {"a": 1}])
def test_what_is_no_list_of_names_is_told(value: Any) -> None:
    [problem] = conf.problems({"REDACT": value})
    assert 'JOBQUEUE["REDACT"]' in problem
