"""How bad a line says that it is."""

import pytest

from logtriage.logs.levels import (
    CALM,
    ERROR,
    FAILED,
    FATAL,
    SERVED,
    WARN,
    level_of,
    named_level,
    otlp_level,
)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (b"INFO  [main] c.e.Cart : errors: 0 failed", CALM),
        (b"WARN slow", WARN),
        (b"[error] mod_jk child init", ERROR),
        (b"ERROR:  deadlock detected", ERROR),
        (b"LOG:  checkpoint complete", CALM),
        (b"FATAL: too many clients", FATAL),
        (b"error: maximum authentication attempts exceeded", ERROR),
        (b'caller=x.go level=warn msg="slow"', WARN),
        (b"E       1 server.go:12] dial failed", ERROR),
        (b" 1702  2395 W Binder: slow", WARN),
        (b"Failed password for root", ERROR),
        (b"finished with 0 errors", CALM),
        (b"kernel: Out of memory: Killed process 12", FATAL),
        (b'10.0.0.1 "GET /x HTTP/1.1" 200 13', SERVED),
        (b'10.0.0.1 "GET /x HTTP/1.1" 503 13', FAILED),
        (b'"POST /v2/failed HTTP/1.1" status: 202 len: 5', SERVED),
        (b"service started", CALM),
        (b"GET /errors/INFO-page", CALM),
    ],
)
def test_the_level_that_is_stated_counts_and_then_the_words(text, level):
    assert level_of(text) == level


def test_levels_of_fields_are_words_or_numbers():
    assert named_level("WARNING") == WARN and named_level("Critical") == FATAL
    assert [named_level(value) for value in (6, "4", 3, 0)] == [CALM, WARN, ERROR, FATAL]
    assert [named_level(value) for value in (30, 40, "50", 60)] == [CALM, WARN, ERROR, FATAL]
    assert [named_level(value) for value in (None, True, "blue", [], "")] == [None] * 5
    assert [otlp_level(value) for value in (9, 13, 17, 24, 0, "x")] == [
        *(CALM, WARN, ERROR, FATAL),
        *(None, None),
    ]
