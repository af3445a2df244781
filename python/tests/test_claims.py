"""Verdicts on claims of papers: what is worse than what, and the ranks that claims are judged by."""

from __future__ import annotations

import pytest

from smrlab.papers.claims import ORDER, Verdict, percentile, slope, worse


def verdict(word: str) -> Verdict:
    return Verdict(id="c", statement="", paper="", ours="", tolerance="", verdict=word, why="")


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 10.0), (0.2, 10.0), (0.21, 20.0), (0.5, 30.0), (0.99, 50.0), (1.0, 50.0)]
)
def test_a_percentile_is_the_value_that_a_share_does_not_exceed(share: float, value: float) -> None:
    assert percentile([10.0, 20.0, 30.0, 40.0, 50.0], share) == value


def test_a_slope_is_that_of_the_line() -> None:
    assert slope([0.0, 1.0, 2.0], [5.0, 3.0, 1.0]) == -2.0


def test_only_a_verdict_below_the_recorded_one_is_worse() -> None:
    found = {(new, old) for new in ORDER for old in ORDER if worse(verdict(new), old)}
    assert found == {("partly", "reproduced"), ("not", "reproduced"), ("not", "partly")}
    assert not worse(verdict("not"), None)
