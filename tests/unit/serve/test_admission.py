from __future__ import annotations

import pytest

from litebert.serve.admission import Admission, OverloadedError


def test_requests_are_bounded() -> None:
    admission = Admission(most=2, most_seconds=10)
    first = admission.enter("a", "m", 10, 0)
    admission.enter("b", "m", 10, 0)
    with pytest.raises(OverloadedError, match="more requests than") as caught:
        admission.enter("c", "m", 10, 0)
    assert caught.value.reason == "requests"
    assert caught.value.retry_after == 1
    admission.leave(first)
    admission.leave(first)
    admission.enter("c", "m", 10, 0)
    assert len(admission) == 2


def test_one_client_cannot_take_every_place() -> None:
    admission = Admission(most=8, most_seconds=10)
    for _ in range(6):
        admission.enter("a", "m", 10, 0)
    with pytest.raises(OverloadedError) as caught:
        admission.enter("a", "m", 10, 0)
    assert caught.value.reason == "client"
    admission.enter("b", "m", 10, 0)


def test_a_wait_that_would_be_too_long_is_refused_at_once() -> None:
    admission = Admission(most=1000, most_seconds=2)
    for _ in range(20):
        admission.enter("a", "m", 100, 1000)
    with pytest.raises(OverloadedError) as caught:
        for _ in range(10):
            admission.enter("a", "m", 100, 1000)
    assert caught.value.reason == "wait"
    assert 1 <= caught.value.retry_after <= 60
    # Another client, or another model, does not wait for all of that.
    admission.enter("b", "m", 100, 1000)
    admission.enter("a", "n", 100, 1000)


def test_a_large_request_alone_is_let_in() -> None:
    Admission(most=10, most_seconds=0.1).enter("a", "m", 1e6, 10)


def test_a_request_may_wait_as_long_as_it_takes_itself() -> None:
    admission = Admission(most=10, most_seconds=0.1)
    admission.enter("a", "m", 3000, 1000)
    admission.enter("b", "m", 3000, 1000)
    with pytest.raises(OverloadedError):
        admission.enter("c", "m", 3000, 1000)
    with pytest.raises(OverloadedError):
        admission.enter("a", "m", 110, 1000)
    admission.enter("c", "m", 40, 1000)


def test_a_small_request_does_not_wait_for_a_large_one_to_end() -> None:
    admission = Admission(most=10, most_seconds=60)
    admission.enter("a", "m", 10_000, 1000)
    assert admission.expected_wait("a", "m", 10, 1000) == pytest.approx(0.01)
    assert admission.expected_wait("b", "m", 10, 1000) == pytest.approx(0.01)
