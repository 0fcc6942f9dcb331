"""Messages that are translated late, and errors that say what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwise import errors
from gpuwise.errors import DataError, GpuwiseError, InvalidInput, Message, UnknownName

GERMAN = {"{count} rows in {file}": "{count} Zeilen in {file}", "the file {name}": "der Datei {name}"}


def german(text: str) -> str:
    return GERMAN.get(text, text)


def test_a_message_is_translated_where_it_is_shown_and_not_before():
    message = Message("{count} rows in {file}", count=3, file=Message("the file {name}", name="a.csv"))
    assert str(message) == "3 rows in the file a.csv"
    assert message.text(german) == "3 Zeilen in der Datei a.csv"
    assert str(message) == "3 rows in the file a.csv"


def test_a_translation_may_change_the_order_of_the_values():
    message = Message("{a} of {b}", a=1, b=2)
    assert message.text(lambda _: "von {b}: {a}") == "von 2: 1"


def test_a_value_may_be_formatted_and_may_have_any_name():
    assert str(Message("{share:.1f} {self} {template}", share=0.25, self="x", template="y")) == "0.2 x y"


@given(st.text())
def test_what_a_person_wrote_is_shown_as_it_is(text):
    assert str(Message('"{text}" is not a number', text=text)) == f'"{text}" is not a number'
    assert str(GpuwiseError(text, "a hint").message) == text


@given(st.integers(-5, 5), st.sampled_from([int, float, str]), st.integers(-5, 5), st.sampled_from([int, float, str]))
def test_equal_messages_are_one_key(a, type_a, b, type_b):
    one, other = Message("{n} rows", n=type_a(a)), Message("{n} rows", n=type_b(b))
    assert (one == other) == (type_a(a) == type_b(b))
    assert len({one, other}) == (1 if one == other else 2)


def test_messages_of_another_text_or_another_kind_are_different():
    assert Message("{n} rows", n=1) != Message("{n} columns", n=1)
    assert Message("text") != "text"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("GpuwiseError", 1),
        ("InvalidInput", 2),
        ("UnknownName", 2),
        ("DataError", 2),
        ("MissingEvidence", 3),
        ("MeasurementFailed", 4),
        ("LauncherFailed", 4),
    ],
)
def test_every_error_of_the_tree_has_its_exit_code_and_is_drawn_at_the_top(name, code):
    error = getattr(errors, name)
    assert issubclass(error, GpuwiseError)
    assert error.exit_code == code
    assert f"{name} " in (errors.__doc__ or "")


def test_no_error_of_the_module_is_outside_the_tree_or_the_drawing():
    classes = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)]
    assert all(issubclass(c, GpuwiseError) and c.__name__ in (errors.__doc__ or "") for c in classes)


def test_an_error_says_what_happened_and_what_to_do():
    error = InvalidInput(Message('"{text}" is not a date.', text="soon"), "Write 2026-11-30.")
    assert str(error) == '"soon" is not a date. Write 2026-11-30.'
    assert str(error.message) == '"soon" is not a date.'
    assert str(error.hint) == "Write 2026-11-30."


def test_an_unknown_name_carries_the_nearest_and_none_where_there_are_none():
    assert UnknownName("H10 is not known.", "Did you mean H100?", ["H100"]).nearest == ("H100",)
    assert UnknownName("x is not known.", "See the list.").nearest == ()


def test_a_data_error_says_where():
    error = DataError("The price is no number.", "Correct it.", file="offers.csv", row=7, column="price")
    assert (error.file, error.row, error.column) == ("offers.csv", 7, "price")
    with pytest.raises(InvalidInput):
        raise error


def test_a_share_is_written_with_a_space_before_the_sign_in_every_message():
    assert str(Message("{share:.0%} of {what}", share=0.654, what="all")) == "65 % of all"
    assert str(Message("{share:.1%}: {inner}", share=0.5, inner=Message("{n:.0%}", n=1))) == "50.0 %: 100 %"
