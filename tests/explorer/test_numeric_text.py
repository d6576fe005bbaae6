"""Numbers that users paste or upload as text."""

import json

import numpy as np
import pytest

from qlae.explorer.observation_views import parse_numbers

KNOWN = ("width", "2019")


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2.5,-3e2", None, [[1, 2.5, -300]]),
        ("1 2.5   -3", None, [[1, 2.5, -3]]),
        ("1;2;3\n4;5;6\n\n", None, [[1, 2, 3], [4, 5, 6]]),
        ("1\t2", None, [[1, 2]]),
        ("1\n2\n3\n", None, [[1], [2], [3]]),
        ("\ufeffa,b\r\n1,2\r\n", ["a", "b"], [[1, 2]]),
        ('"a, cm",b\n"1",2', ["a, cm", "b"], [[1, 2]]),
        ("width,2019\n1,2", ["width", "2019"], [[1, 2]]),  # a name that looks like a number, but is known
        ("a name\n1\n2", ["a name"], [[1], [2]]),
        ("[1, 2.5]", None, [[1, 2.5]]),
        ("[[1, 2], [3, 4]]", None, [[1, 2], [3, 4]]),
        ('{"a": 1, "b": 2}', ["a", "b"], [[1, 2]]),
        ('{"a": [1, 3], "b": [2, 4]}', ["a", "b"], [[1, 2], [3, 4]]),
        ('[{"a": 1, "b": 2}, {"a": 3, "b": 4}]', ["a", "b"], [[1, 2], [3, 4]]),
    ],
)
def test_forms(text, names, rows):
    parsed = parse_numbers(text.encode(), KNOWN)
    assert parsed.names == names
    np.testing.assert_array_equal(parsed.rows, rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no numbers"),
        (" \n ", "there are no numbers"),
        ("a,b", "there are no numbers"),
        ("1,x", "'x' in line 1, column 2 is not a finite number"),
        ("a,b\n1,", "a number is missing in line 2, column 'b'"),
        ("a,b\n1,nan", "'nan' in line 2, column 'b' is not a finite number"),
        ("1,1e999", "'1e999' in line 1, column 2 is not a finite number"),
        ("1;2,5", "'2,5' in line 1, column 2 is not a finite number; write decimals with a point"),
        ("1,2\n3", "line 2 has 1 numbers, expected 2"),
        ("a,a\n1,2", "two columns have the same name"),
        ("[1, [2]]", "column 2 is not a finite number"),
        ("[1, null]", "got `null`"),
        ("[1, true]", "got `bool`"),
        ("[]", "there are no numbers"),
        ("{}", "there are no numbers"),
        ('{"a": [1], "b": [1, 2]}', "must have the same length"),
        ('[{"a": 1}, {"b": 1}]', "must have the same names"),
        ("[1, 2", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[NaN]", "cannot be read as JSON"),
        (json.dumps([10**400]), "out of range"),
        ('"a,b\n1,2', "cannot be read as a CSV"),
    ],
)
def test_text_that_is_refused(text, message):
    with pytest.raises(ValueError, match=r"\w") as error:
        parse_numbers(text.encode(), KNOWN)
    assert message in str(error.value)


def test_bytes_that_are_no_text():
    with pytest.raises(ValueError, match="this is not text"):
        parse_numbers(b"\xff\xfe\x00", KNOWN)


def test_a_long_first_line_does_not_decide_how_much_memory_the_others_take():
    with pytest.raises(ValueError, match="line 2 has 1 numbers, expected 300,000"):
        parse_numbers((",".join(["1"] * 300_000) + "\n1" * 300_000).encode(), KNOWN)


@pytest.mark.parametrize("part", ["[" * 500 + "]" * 500, "[[[]]]"])
def test_lists_in_lists_are_refused_before_the_rest_is_read(part):
    with pytest.raises(ValueError, match=r"got `array` - at `\$\[0\]\[0\]`"):
        parse_numbers(f"[{part}, this is never read".encode(), KNOWN)
