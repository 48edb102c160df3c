"""Value recall: which strings an output holds."""

from __future__ import annotations

import pytest

from mirada.errors import DataError
from mirada.evaluation.metrics import total
from mirada.evaluation.values import holds, recall


@pytest.mark.parametrize(
    ("output", "value", "found"),
    [
        ("A table at Delfina.", "delfina", True),
        ("a table at Delfinas", "Delfina", False),
        ("at 12:30 pm", "12:30", True),
        ("at 12:30 pm", "30", False),
        ("at 12:30 pm", "12", False),
        ("it costs $5.", "5", True),
        ("it costs 5.40", "5", False),
        ("it costs 15", "5", False),
        ("am 3. März in der STRASSE", "straße", True),
        ("call (415) 555-0100", "(415) 555-0100", True),
        ("我们明天去北京。", "北京", True),
        ("", "x", False),
    ],
)
def test_a_value_stands_as_whole_words(output, value, found):
    assert holds(output, value) is found


def test_recall_is_over_all_values():
    # 1 of 2, 0 of 1, none wanted: 1 of 3 over the corpus.
    found = recall(["a b", "c", "d"], [["a", "x"], ["y"], ["", " "]])
    assert found.rows.tolist() == [[1, 2], [0, 1], [0, 0]]
    assert total(found) == pytest.approx(100 / 3)
    assert found.signature == "case:fold|unit:value|match:whole words"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([["a"]], "expected values for every output, got 2 outputs and 1 lists"),
        ([[], [" "]], "no value to look for: every list of values is empty"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(DataError, match=f"^{message}$"):
        recall(["a", "b"], values)
