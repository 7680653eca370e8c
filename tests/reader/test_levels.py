"""How bad a line says that it is."""

import pytest

from logreader import levels
from logreader.levels import CALM, ERROR, FATAL, WARN, level_of, named_level, status_of

# Stated in capitals, in brackets, before a colon, in a field, by a letter of klog or Ruby,
# by a number of syslog; then by words; then by the status of a request.
LINES = """
INFO  [main] c.e.Cart : 3 failed ~ LOG:  checkpoint failed ~ <notice> failed = CALM
WARN slow ~ web warning: disk ~ caller=x.go level=warn msg="failed" = WARN
ERROR:  deadlock ~ [error] mod_jk ~ error: too many attempts = ERROR
FATAL: too many clients ~ severity="critical" x = FATAL
I       1 server.go:12] failed ~ I, [#77]  -- : failed = CALM
E       1 server.go:12] dial ~ E, [#77]  -- : no ~ <11>web: x = ERROR
W       1 server.go:12] x ~ <12>web: x = WARN
F       1 server.go:12] x ~ <8>web: x ~ panic: runtime ~ Out of memory: Killed process 1 = FATAL
Failed password for root ~ dial tcp: connection refused ~ exited with code 1 = ERROR
service started ~ GET /errors/INFO-page of my/ERROR/x ~ <14>web: failed = CALM
finished with 0 errors ~ 12 passed, 0 failed ~ errors: 0 ~ failed=0 ~ exited with code 0 = CALM
"GET /x HTTP/1.1" 200 1 ~ "GET /x HTTP/1.1" 404 1 ~ "POST /failed HTTP/1.1" status: 202 = SERVED
"GET /x HTTP/1.1" 503 1 ~ INFO GET /basket/7 -> 502 in 3 ms ~ upstream answered 503 = FAILED
"GET /x HTTP/1.1" 429 1 ~ "GET /x HTTP/1.1" 401 1 = WARN
ERROR GET /basket/7 -> 200 = ERROR
"""
CASES = [
    (text, getattr(levels, row.rpartition(" = ")[2]))
    for row in LINES.strip("\n").split("\n")
    for text in row.rpartition(" = ")[0].split(" ~ ")
]


@pytest.mark.parametrize(("text", "level"), CASES)
def test_the_level_that_is_stated_counts_and_then_the_words(text, level):
    assert level_of(text.encode(), status_of(text.encode())) == level


@pytest.mark.parametrize("text", [b"took 503 ms", b"port 500", b'"GET /x" 2000', b"code 5031", b""])
def test_other_numbers_are_no_status(text):
    assert status_of(text) == b""


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("priority", {7: CALM, 6: CALM, 5: CALM, "4": WARN, 3: ERROR, "2": FATAL, 0: FATAL}),
        ("level", {10: CALM, 30: CALM, "40": WARN, 50: ERROR, "60": FATAL, 42: None, 100: None}),
        ("severitynumber", {1: CALM, 9: CALM, 13: WARN, 16: WARN, "17": ERROR, 21: FATAL}),
        ("severitylevel", {0: CALM, 1: CALM, 2: WARN, 3: ERROR, 4: FATAL}),
        ("severity", {"WARNING": WARN, "Critical": FATAL, " err ": ERROR, "Information": CALM}),
        ("level", {None: None, True: None, "blue": None, "": None, "²": None, "9" * 5000: None}),
        ("level", {float("nan"): None, 10**400: None, float("inf"): None}),
    ],
)
def test_the_level_of_a_field_is_a_word_or_a_number_of_its_scale(field, expected):
    assert {value: named_level(value, field) for value in expected} == expected
    assert named_level([], field) is named_level({}, field) is None
