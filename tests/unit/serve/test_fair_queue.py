from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from litebert.serve.engine.fair_queue import FairQueue, Waiting


def drain(queue: FairQueue[str], budget: int) -> list[list[tuple[Waiting[str], int]]]:
    steps: list[list[tuple[Waiting[str], int]]] = []
    while queue:
        steps.append(queue.take(budget))
    return steps


sizes = st.lists(st.integers(1, 40), min_size=1, max_size=6)
requests = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), sizes), max_size=12)


@given(requests, st.integers(1, 100))
def test_every_sequence_is_taken_once_and_in_order(
    asked: list[tuple[str, str, list[int]]], budget: int
) -> None:
    queue: FairQueue[str] = FairQueue()
    waiting = [Waiting(client, key, list(parts)) for client, key, parts in asked]
    for request in waiting:
        queue.add(request)
    assert queue.tokens == sum(sum(parts) for _, _, parts in asked)
    assert len(queue) == len(asked)
    taken: dict[int, list[int]] = {id(request): [] for request in waiting}
    for step in drain(queue, budget):
        assert len({request.key for request, _ in step}) == 1
        total = sum(request.sizes[place] for request, place in step)
        assert total <= budget or len(step) == 1
        for request, place in step:
            taken[id(request)].append(place)
    assert all(taken[id(r)] == list(range(len(r.sizes))) for r in waiting)
    assert queue.tokens == 0


def test_a_client_with_little_does_not_wait_for_one_with_much() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(50):
        queue.add(Waiting("many", "x", [10] * 4))
    queue.take(40)
    small = Waiting("few", "x", [10])
    queue.add(small)
    assert small in {request for request, _ in queue.take(40)}


def test_clients_get_like_shares_however_much_they_ask() -> None:
    queue: FairQueue[str] = FairQueue()
    for client, count in (("a", 100), ("b", 10), ("c", 30)):
        for _ in range(count):
            queue.add(Waiting(client, "x", [7]))
    first = Counter(request.client for _ in range(3) for request, _ in queue.take(70))
    assert max(first.values()) - min(first.values()) <= 1


def test_a_small_request_of_the_same_client_passes_a_large_one_which_is_not_starved() -> None:
    queue: FairQueue[str] = FairQueue()
    large = Waiting("a", "x", [10] * 20)
    queue.add(large)
    queue.take(10)
    served: list[bool] = []
    for _ in range(60):  # as much comes as can be computed
        queue.add(Waiting("a", "x", [10]))
        queue.add(Waiting("a", "x", [10]))
        served += [request is large for request, _ in queue.take(20)]
    assert not all(served[:2])
    assert sum(served) >= 5


def test_a_newcomer_has_no_claim_on_what_others_had_before_it_came() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(100):
        queue.add(Waiting("old", "x", [10]))
    for _ in range(50):
        queue.take(10)
    for _ in range(100):
        queue.add(Waiting("new", "x", [10]))
    following = Counter(request.client for _ in range(20) for request, _ in queue.take(10))
    assert following["old"] >= 9


def test_what_nobody_waits_for_is_taken_out() -> None:
    queue: FairQueue[str] = FairQueue()
    one, other = Waiting("a", "x", [5, 5]), Waiting("a", "x", [3])
    queue.add(one)
    queue.add(other)
    queue.remove(one)
    queue.remove(one)
    assert queue.tokens == 3
    assert [request for request, _ in queue.take(100)] == [other]
    assert not queue
    queue.add(Waiting("a", "x", []))
    assert not queue
