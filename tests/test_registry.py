from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import Retry, registry
from django_jobqueue.exceptions import InvalidOption, InvalidPayload, UnknownJobType
from django_jobqueue.registry import JobType


def function(report_id: int, format: str = "csv") -> None:
    """A handler."""


async def coroutine() -> None:
    """An async one."""


def of(handler: Any = function, **options: Any) -> JobType:
    return JobType(**{"name": "tests:registry", "function": handler, **options})


@pytest.fixture
def names() -> Iterator[list[str]]:
    """Names that are forgotten after the test."""
    made: list[str] = []
    yield made
    for name in made:
        registry.unregister(name)


def test_a_registered_type_is_found_by_its_name(names: list[str]) -> None:
    names.append("tests:registry")
    job_type = of()
    registry.register(job_type)
    assert registry.find("tests:registry") is registry.get("tests:registry") is job_type
    assert job_type in registry.all_types()


def test_all_types_come_by_name(names: list[str]) -> None:
    names += ["tests:b", "tests:a", "tests:c"]
    for name in names:
        registry.register(of(name=name))
    found = [one.name for one in registry.all_types()]
    assert found == sorted(found)
    assert set(names) <= set(found)


def test_an_unregistered_type_is_forgotten() -> None:
    registry.register(of())
    registry.unregister("tests:registry")
    registry.unregister("tests:registry")
    assert registry.find("tests:registry") is None


def test_an_unknown_type_is_refused_with_the_nearest_names(names: list[str]) -> None:
    names += ["tests:generate-report", "tests:remove-report"]
    for name in names:
        registry.register(of(name=name))
    with pytest.raises(UnknownJobType) as refused:
        registry.get("tests:genrate-report")
    assert refused.value.name == "tests:genrate-report"
    assert "'tests:generate-report'" in str(refused.value)
    assert "EXTERNAL_TYPES" in str(refused.value)


def test_nothing_near_is_not_made_up() -> None:
    with pytest.raises(UnknownJobType) as refused:
        registry.get("zzzzzzzzzz")
    assert "Nearest" not in str(refused.value)


@pytest.mark.parametrize("pattern", ["billing:*", "billing:invoice", "b?lling:*", "*"])
def test_types_of_other_code_bases_are_let_through(pattern: str) -> None:
    assert registry.get("billing:invoice", ["x", pattern]) is None


@pytest.mark.parametrize("pattern", ["Billing:*", "billing", "invoice", "billing:*x"])
def test_a_pattern_must_match_the_whole_name_and_its_case(pattern: str) -> None:
    with pytest.raises(UnknownJobType):
        registry.get("billing:invoice", [pattern])


def test_a_registered_type_wins_over_a_pattern(names: list[str]) -> None:
    names.append("tests:registry")
    registry.register(of())
    assert registry.get("tests:registry", ["*"]) is not None


@pytest.mark.parametrize("name", [None, 5, ("a",)], ids=repr)
def test_a_name_that_is_no_text_is_refused_as_unknown(name: Any) -> None:
    with pytest.raises(UnknownJobType):
        registry.get(name)


def test_two_functions_of_one_name_are_refused(names: list[str]) -> None:
    names.append("tests:registry")
    registry.register(of())
    with pytest.raises(InvalidOption, match=r"test_registry\.function and .*test_registry\.coroutine"):
        registry.register(of(coroutine))


def test_the_same_function_may_be_registered_again(names: list[str]) -> None:
    names.append("tests:registry")
    registry.register(of())
    again = of(priority=5)
    registry.register(again)
    assert registry.find("tests:registry") is again


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"name": ""}, "1 to 200 characters"),
        ({"name": "x" * 201}, "1 to 200 characters"),
        ({"name": 5}, "1 to 200 characters"),
        ({"priority": 101}, "priority=101"),
        ({"priority": -101}, "priority=-101"),
        ({"priority": True}, "priority=True"),
        ({"priority": 1.0}, "priority=1.0"),
        ({"max_attempts": 0}, "max_attempts=0"),
        ({"max_attempts": 10_001}, "max_attempts=10001"),
        ({"max_attempts": "3"}, "max_attempts='3'"),
        ({"retry": 5}, "retry=5"),
        ({"never_retry": (ValueError("x"),)}, "no exception class"),
        ({"never_retry": (int,)}, "no exception class"),
        ({"function": coroutine, "atomic": True}, "plain function"),
        *(
            ({"timeout": bad}, f"timeout={bad!r}")
            for bad in (0, -5, 0.09, 2_592_001, float("nan"), float("inf"), "30", True, timedelta(seconds=-1))
        ),
        *(({"expires_after": bad}, f"expires_after={bad!r}") for bad in (-1, float("nan"), "soon", True)),
    ],
    ids=str,
)
def test_a_bad_option_is_refused_with_the_rule(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidOption, match="@job") as refused:
        of(**options)
    assert why in str(refused.value)


def test_options_at_their_bounds_are_taken() -> None:
    low = of(name="x", priority=-100, max_attempts=1, retry=lambda exception, job: 1)
    high = of(name="x" * 200, priority=100, max_attempts=10_000, retry=Retry(), never_retry=(KeyError,))
    assert (low.is_async, high.is_async) == (False, False)
    assert of(coroutine).is_async


def test_a_payload_is_made_of_the_arguments_given() -> None:
    assert of().bind((7,), {"format": "json"}) == {"report_id": 7, "format": "json"}
    assert of().bind((), {"report_id": 7}) == {"report_id": 7}


def test_further_keywords_are_part_of_the_payload() -> None:
    def handler(a: int, **rest: Any) -> None: ...

    assert of(handler).bind((1,), {"b": 2, "c": 3}) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'report_id'"),
        ((1,), {"formt": "csv"}, "unexpected keyword argument 'formt'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"report_id": 1}, "multiple values for argument 'report_id'"),
    ],
)
def test_arguments_that_the_handler_could_not_take_are_refused(args: Any, kwargs: Any, why: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        of().bind(args, kwargs)
    assert why in str(refused.value)
    assert "'tests:registry'(report_id: int, format: str = 'csv')" in str(refused.value)


def test_the_context_is_no_part_of_the_payload() -> None:
    def handler(context: Any, a: int) -> None: ...

    job_type = of(handler, takes_context=True)
    assert job_type.bind((1,), {}) == {"a": 1}
    with pytest.raises(InvalidPayload, match="context"):
        job_type.bind((), {"a": 1, "context": 2})


@pytest.mark.parametrize(
    "handler", [function, lambda: None, lambda a, context: None], ids=["other", "none", "second"]
)
def test_who_takes_the_context_names_it_first(handler: Any) -> None:
    with pytest.raises(InvalidOption, match="must be named 'context'"):
        of(handler, takes_context=True)


@pytest.mark.parametrize(
    "handler", [lambda a, /: None, lambda *args: None], ids=["positional only", "any number"]
)
def test_every_argument_has_a_name(handler: Any) -> None:
    with pytest.raises(InvalidOption, match="has no name in a payload"):
        of(handler)


def test_a_key_is_text_or_worked_out_from_the_payload() -> None:
    job_type = of()
    assert job_type.key_for("report", {"report_id": 7}) == "report"
    assert job_type.key_for(lambda report_id, **rest: f"report-{report_id}", {"report_id": 7}) == "report-7"
    assert job_type.key_for(None, {"report_id": 7}) is None
