"""Outputs of span heads become answers: the best spans of all windows of a question, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.errors import DataError
from litebert.model.span_layout import END_COLUMN, RANK_COLUMN, START_COLUMN, class_column

if TYPE_CHECKING:
    from jaxtyping import Float

    from litebert.tasks.records import Feature
    from litebert.tasks.span_windows import Window

__all__ = ["DecodeOptions", "SpanAnswer", "best_spans", "class_logits", "windows_of"]

END_BEAM: Final = 5
"""Ends for each start of the joint head. Source: official `run_squad_v2.py`, end_n_top."""
_USABLE: Final = -1e29
"""Log-probabilities below stand where no answer can."""


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """One possible answer.

    Attributes:
        text: characters of the passage, blanks at the ends taken off.
        start: its first character.
        end: the character behind it.
        start_score: logit or log-probability of the start.
        end_score: likewise of the end.
        probability: softmax of the summed scores over the answers of the same list.
    """

    text: str
    start: int
    end: int
    start_score: float
    end_score: float
    probability: float


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How answers are found.

    Attributes:
        is_joint: outputs are of the head "span_joint", else of "span".
        n_best: answers that are kept; starts and ends that are looked at, for "span".
        max_answer_length: pieces of an answer at most.
    """

    is_joint: bool
    n_best: int
    max_answer_length: int


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """Candidates in one window: pieces of the passage and scores, [K] each."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def windows_of(
    count: int, features: Sequence[Feature], outputs: Sequence[Float[np.ndarray, "S C"]]
) -> list[list[tuple[Window, NDArray[np.float64]]]]:
    """Return the windows of each of `count` questions with their outputs.

    Raises:
        DataError: outputs that do not belong to the features, or are not finite.
    """
    if len(features) != len(outputs):
        raise DataError(
            f"{len(outputs)} outputs for {len(features)} windows; give one for each, in order"
        )
    result: list[list[tuple[Window, NDArray[np.float64]]]] = [[] for _ in range(count)]
    for feature, output in zip(features, outputs, strict=True):
        if len(output) != len(feature.encoded):
            raise DataError(
                f"{len(output)} rows of output for a window of {len(feature.encoded)} tokens; the head "
                "must answer for each token: model and task.json do not belong together"
            )
        if not np.isfinite(output).all():
            raise DataError(
                "the model gave NaN or infinity; it has diverged: train again with a lower learning rate"
            )
        result[feature.encoded.index].append((feature.details, output.astype(np.float64)))
    return result


def class_logits(output: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the [count] logits of the answer's classes in one window.

    Raises:
        DataError: another number of columns.
    """
    if output.shape[1] != class_column(count):
        raise DataError(
            f"outputs have {output.shape[1]} columns, the task needs {class_column(count)}; the model and "
            "its task.json do not belong together"
        )
    return output[0, class_column() :]


def best_spans(
    windows: Sequence[tuple[Window, NDArray[np.float64]]], options: DecodeOptions
) -> list[SpanAnswer]:
    """Return different answers, best first; none if no window allows one.

    Spans lie within the passage, end at or after their start, are short enough, and start in the
    window that shows their start with the most context. Of equal scores the first found is first.
    Source: official `squad_utils.py`, `write_predictions`. Differs from the official code: where
    none of the best starts and ends of "span" make an answer, the best span of all is taken.

    Args:
        windows: all windows of one question, with outputs.
        options: how to decode.

    Raises:
        DataError: outputs of another head.
    """
    width = class_column() if options.is_joint else 2
    for _, output in windows:
        if output.shape[1] < width or (not options.is_joint and output.shape[1] != 2):
            raise DataError(
                f"outputs have {output.shape[1]} columns, the task needs {width}; the model and its "
                "task.json do not belong together"
            )
    find = _joint if options.is_joint else _independent
    found = [find(window, output, options) for window, output in windows]
    answers = _answers(windows, found, options.n_best)
    if answers or options.is_joint:
        return answers
    found = [_band(window, output, options) for window, output in windows]
    return _answers(windows, found, options.n_best)


def _answers(
    windows: Sequence[tuple[Window, NDArray[np.float64]]], found: Sequence[_Spans], n_best: int
) -> list[SpanAnswer]:
    """The best spans with different texts, of all windows; blank ones are no answers."""
    owner = np.repeat(np.arange(len(found)), [len(spans.first) for spans in found])
    if not len(owner):
        return []
    first = np.concatenate([spans.first for spans in found])
    last = np.concatenate([spans.last for spans in found])
    start = np.concatenate([spans.start for spans in found])
    end = np.concatenate([spans.end for spans in found])
    order = np.argsort(-(start + end), kind="stable")
    seen: dict[str, tuple[int, int, int]] = {}
    owners: list[int] = owner.tolist()
    for i in order.tolist():
        window = windows[owners[i]][0]
        passage = window.passage
        a, b = passage.text_of(window.start + int(first[i]), window.start + int(last[i]))
        text = passage.text[a:b]
        if text and text not in seen:
            seen[text] = (i, a, b)
            if len(seen) == n_best:
                break
    chosen = [i for i, _, _ in seen.values()]
    scores = start[chosen] + end[chosen]
    weights = np.exp(scores - scores.max()) if chosen else scores
    return [
        SpanAnswer(text, a, b, float(start[i]), float(end[i]), float(weight / weights.sum()))
        for (text, (i, a, b)), weight in zip(seen.items(), weights, strict=True)
    ]


def _independent(window: Window, output: NDArray[np.float64], options: DecodeOptions) -> _Spans:
    """Pairs of the n best starts and the n best ends, over all tokens as officially."""
    starts = _top(output[:, 0], options.n_best)
    ends = _top(output[:, 1], options.n_best)
    first = np.repeat(starts, len(ends)) - window.offset
    last = np.tile(ends, len(starts)) - window.offset
    return _fitting(window, first, last, output, options)


def _band(window: Window, output: NDArray[np.float64], options: DecodeOptions) -> _Spans:
    """Every span that is short enough."""
    pieces = np.arange(window.stop - window.start)
    first = np.repeat(pieces, options.max_answer_length)
    last = first + np.tile(np.arange(options.max_answer_length), len(pieces))
    return _fitting(window, first, last, output, options)


def _fitting(
    window: Window,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    output: NDArray[np.float64],
    options: DecodeOptions,
) -> _Spans:
    keep = _allowed(window, first, last, options)
    first, last = first[keep], last[keep]
    rows = window.offset
    return _Spans(first, last, output[first + rows, 0], output[last + rows, 1])


def _joint(window: Window, output: NDArray[np.float64], options: DecodeOptions) -> _Spans:
    """The best ends of each of the best starts."""
    firsts: list[Any] = []
    lasts: list[Any] = []
    starts: list[Any] = []
    ends: list[Any] = []
    ranks = output[:, RANK_COLUMN]
    places = np.flatnonzero(ranks >= 0)
    for place in places[np.argsort(ranks[places], kind="stable")].tolist():
        column = output[:, END_COLUMN + int(ranks[place])]
        best = _top(column, END_BEAM)
        best = best[column[best] > _USABLE]
        firsts.append(np.full(len(best), place - window.offset))
        lasts.append(best - window.offset)
        starts.append(np.full(len(best), output[place, START_COLUMN]))
        ends.append(column[best])
    if not firsts:
        return _Spans(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    first, last = np.concatenate(firsts), np.concatenate(lasts)
    keep = _allowed(window, first, last, options)
    return _Spans(first[keep], last[keep], np.concatenate(starts)[keep], np.concatenate(ends)[keep])


def _allowed(
    window: Window, first: NDArray[np.int64], last: NDArray[np.int64], options: DecodeOptions
) -> NDArray[np.bool_]:
    size = window.stop - window.start
    keep = (first >= 0) & (last < size) & (last >= first)
    keep &= last - first < options.max_answer_length
    if window.is_best is not None:
        keep[keep] = window.is_best[first[keep]]
    return keep


def _top(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Indices of the largest values, largest first; of equal ones the first."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    least = np.partition(values, -count)[-count]
    found = np.flatnonzero(values >= least)
    return found[np.argsort(-values[found], kind="stable")][:count]
