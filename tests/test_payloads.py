"""What goes in comes back unchanged, or is refused by its path."""

import decimal
import json
import math
import uuid
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, timedelta
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe

from django_jobqueue.exceptions import InvalidPayload, InvalidResult
from django_jobqueue.models import Job
from django_jobqueue.payloads import MAX_DEPTH, clean_text, decode, encode_payload, encode_result

LIMIT = 1_048_576


class Word(StrEnum):
    YES = "yes"


class Number(IntEnum):
    ONE = 1


class Kind(Enum):
    A = "a"


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


#: What is no JSON value, and the word of the message that says so.
REFUSED: dict[str, tuple[Any, str]] = {
    "aware datetime": (datetime(2026, 1, 1, tzinfo=UTC), "datetime.datetime is not JSON"),
    "naive datetime": (datetime(2026, 1, 1), "datetime.datetime is not JSON"),
    "date": (date(2026, 1, 1), "datetime.date is not JSON"),
    "timedelta": (timedelta(1), "datetime.timedelta is not JSON"),
    "Decimal": (decimal.Decimal("1.5"), "decimal.Decimal is not JSON"),
    "UUID": (uuid.UUID(int=1), "uuid.UUID is not JSON"),
    "set": ({1}, "builtins.set is not JSON"),
    "frozenset": (frozenset(), "builtins.frozenset is not JSON"),
    "bytes": (b"x", "builtins.bytes is not JSON"),
    "complex": (1j, "builtins.complex is not JSON"),
    "object": (object(), "builtins.object is not JSON"),
    "class": (int, "builtins.type is not JSON"),
    "generator": ((one for one in ()), "builtins.generator is not JSON"),
    "range": (range(3), "builtins.range is not JSON"),
    "exception": (ValueError("x"), "builtins.ValueError is not JSON"),
    "lazy text": (lazystr("later"), "is not JSON"),
    "model instance": (Job(), "Job is not JSON"),
    "NaN": (math.nan, "nan is not a JSON number"),
    "Infinity": (math.inf, "inf is not a JSON number"),
    "-Infinity": (-math.inf, "-inf is not a JSON number"),
    "NUL": ("a\x00b", "NUL character"),
    "lone surrogate": ("a\ud800b", "lone surrogate at position 1"),
    "Enum": (Kind.A, "Pass its .value"),
    "StrEnum": (Word.YES, "Pass its .value"),
    "IntEnum": (Number.ONE, "Pass its .value"),
    "int as key": ({1: "x"}, "the key 1 is not text"),
    "None as key": ({None: "x"}, "the key None is not text"),
    "bool as key": ({True: "x"}, "the key True is not text"),
    "tuple as key": ({(1, 2): "x"}, "the key (1, 2) is not text"),
    "StrEnum as key": ({Word.YES: "x"}, "is not text"),
    "NUL in a key": ({"a\x00": "x"}, "NUL character"),
    "surrogate in a key": ({"\udfff": "x"}, "lone surrogate at position 0"),
    "nested 5,000 deep": (nested(5_000), "nested deeper than 200 levels"),
    "inside itself": (cycle(), "nested deeper than 200 levels"),
    "an int of 5,000 digits": (10**5_000, "limit"),
}
every_refused = pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)


@every_refused
def test_what_json_cannot_hold_is_refused_with_the_reason(value: Any, why: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        encode_payload({"key": value}, LIMIT)
    assert why in str(refused.value)
    str(refused.value).encode()  # a message that cannot be printed helps nobody


@every_refused
def test_a_result_is_refused_for_the_same_reasons(value: Any, why: str) -> None:
    with pytest.raises(InvalidResult) as refused:
        encode_result([value], LIMIT)
    assert why in str(refused.value)
    assert refused.value.path.startswith("result")


def test_the_path_inside_the_payload_is_named() -> None:
    with pytest.raises(InvalidPayload) as refused:
        encode_payload({"a": [{"b": ({"c": 1}, {"d": {1}})}]}, LIMIT)
    assert refused.value.path == "payload.a[0].b[1].d"
    assert str(refused.value).startswith("payload.a[0].b[1].d: ")


@pytest.mark.parametrize("payload", [None, [], "text", 1, 1.5, True, (1,), object(), [("a", 1)]], ids=repr)
def test_a_payload_is_a_dict(payload: Any) -> None:
    with pytest.raises(InvalidPayload, match="payload: must be a dict"):
        encode_payload(payload, LIMIT)


ROUND_TRIPS = [
    {},
    {"": ""},
    {"none": None, "yes": True, "no": False},
    {"text": "ä ß € 漢字 😀 \u2028 \\ \" ' \t \n \x7f \x01"},
    {"ключ": ["значение", {"😀": "\U0010ffff"}]},
    {"dotted.key": {"$[0]": 1, "%s": "%(x)s %%"}},
    {"int": [0, -1, 2**31, 2**53 + 1, 2**63, -(2**64), 10**300]},
    {"float": [0.0, 1.0, -1.5, 0.1, 1e-7, 5e-324, 123456789.123456789, 9007199254740993.0]},
    {"deep": nested(MAX_DEPTH - 1)},
    {"a": {"b": {"c": [[], {}, [{}]]}}},
]


@pytest.mark.parametrize("payload", ROUND_TRIPS, ids=lambda one: str(one)[:30])
def test_json_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    back = decode(encode_payload(payload, LIMIT))
    assert back == payload
    assert repr(back) == repr(payload)


def test_tuples_become_lists() -> None:
    assert decode(encode_payload({"pair": (1, (2, 3))}, LIMIT)) == {"pair": [1, [2, 3]]}


def test_subclasses_that_equal_plain_values_are_taken_as_these() -> None:
    payload = OrderedDict(text=mark_safe("<b>"), more=defaultdict(list, a=[1]))
    back = decode(encode_payload(payload, LIMIT))
    assert back == {"text": "<b>", "more": {"a": [1]}}
    assert type(back["text"]) is str


def test_a_level_more_than_the_limit_of_nesting_is_refused() -> None:
    encode_payload({"deep": nested(MAX_DEPTH - 1)}, LIMIT)
    with pytest.raises(InvalidPayload, match="nested deeper"):
        encode_payload({"deep": nested(MAX_DEPTH)}, LIMIT)


def test_the_limit_counts_bytes_of_json() -> None:
    just = {"a": "x" * (1_000 - len('{"a":""}'))}
    assert len(encode_payload(just, 1_000)) == 1_000
    with pytest.raises(InvalidPayload, match=r"payload: 1,001 bytes of JSON, over the limit of 1,000"):
        encode_payload({"a": just["a"] + "x"}, 1_000)


def test_text_beyond_ascii_counts_as_its_utf_8() -> None:
    encode_payload({"a": "€" * 100}, 308)
    with pytest.raises(InvalidPayload, match=r"308 bytes.*307.*MAX_PAYLOAD_BYTES"):
        encode_payload({"a": "€" * 100}, 307)


def test_a_result_over_its_limit_names_its_own_setting() -> None:
    with pytest.raises(InvalidResult, match="MAX_RESULT_BYTES"):
        encode_result("x" * 100, 50)


@pytest.mark.parametrize("result", [0, False, "", [], {}, "text", [1, {"a": None}], 1.5], ids=repr)
def test_any_json_value_may_be_a_result(result: Any) -> None:
    text = encode_result(result, LIMIT)
    assert text is not None
    assert json.loads(text) == result


def test_no_result_is_none() -> None:
    assert encode_result(None, LIMIT) is None


def test_cleaned_text_can_be_stored_everywhere() -> None:
    assert clean_text("a\x00b\ud800c€") == "a\\x00b\\ud800c€"


def test_long_text_is_cut_in_the_middle() -> None:
    text = "H" * 5_000 + "T" * 5_000
    cut = clean_text(text, 1_000)
    assert cut.startswith("H" * 250 + "\n… 9,000 characters left out …\n")
    assert cut.endswith("T" * 750)
    assert clean_text("x" * 1_000, 1_000) == "x" * 1_000
