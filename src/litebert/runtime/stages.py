"""Answers with exits from a packed graph: a depth at a time, and the sequences that stay are packed anew.

The rules are those of `litebert.tasks.exit_rules`, the same that torch follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import CheckpointError
from litebert.runtime.packing import PackedRows, pack_rows
from litebert.tasks.exit_rules import ExitRule, ExitWatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from litebert.runtime.graph import Graph
    from litebert.tasks.classification import SequenceClassification

__all__ = ["ExitStages", "moved_rows"]


@dataclass(slots=True, eq=False)
class _Part:
    """One call on its way through the depths.

    Attributes:
        rows: where its sequences lie; members are numbers of the whole batch.
        watch: follows their answers, in the order of the members.
        hidden: [R, S, H] what the last depth gave; None before the first.
    """

    rows: PackedRows
    watch: ExitWatch
    hidden: NDArray[np.float32] | None = None


class ExitStages:
    """Runs a graph with exits, and counts what went through each depth.

    Attributes:
        rule: when a sequence leaves.
        depths: how many sequences left after each depth, [L].
        tokens: tokens that went through each depth, [L].
    """

    def __init__(self, graph: Graph, task: SequenceClassification, rule: ExitRule) -> None:
        """Set it up.

        Raises:
            CheckpointError: the graph cannot go on from the states of a depth.
            SettingsError: a criterion that the task does not have.
        """
        if not graph.has_stages or graph.head != "sequence":
            raise CheckpointError(
                "the graph cannot stop between depths; export the folder again, with this version"
            )
        ExitWatch(rule, task)
        self._graph, self._task, self.rule = graph, task, rule
        self.depths = np.zeros(graph.depths, np.int64)
        self.tokens = np.zeros(graph.depths, np.int64)

    @property
    def mean_depth(self) -> float:
        """Depths that a token went through on average; 0 before the first answer."""
        return float(self.tokens.sum() / max(1, self.tokens[0]))

    def outputs(
        self,
        calls: Sequence[PackedRows],
        ids: Sequence[NDArray[np.int32]],
        types: Sequence[NDArray[np.int32]],
        *,
        depth: int | None = None,
    ) -> list[NDArray[np.float32]]:
        """Return the logits of each sequence, [1, C], in order.

        Args:
            calls: where the sequences of each call lie.
            ids: token ids of each sequence.
            types: segments of each.
            depth: depths at most; None: all.

        Raises:
            DataError: logits that are not finite.
            CheckpointError, SettingsError: as `Graph.run`.
        """
        last = depth or self._graph.depths
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(ids)
        for rows in calls:
            part: _Part | None = _Part(rows, ExitWatch(self.rule, self._task))
            for end in range(1, last + 1):
                if part is None:
                    break
                part = self._advance(part, end, last, ids, types, found)
        return found

    def _advance(
        self,
        part: _Part,
        end: int,
        last: int,
        ids: Sequence[NDArray[np.int32]],
        types: Sequence[NDArray[np.int32]],
        found: list[NDArray[np.float32]],
    ) -> _Part | None:
        """Run one depth; return what stays, None if nothing does."""
        rows, members = part.rows, part.rows.members.tolist()
        logits, hidden = self._graph.run(
            rows,
            (ids[i] for i in members),
            (types[i] for i in members),
            ("logits", self._graph.state_name),
            depth=end,
            start=None if part.hidden is None else (end - 1, part.hidden),
        )
        self.tokens[end - 1] += int(rows.lengths.sum())
        if end == last:
            leave = np.ones(len(members), np.bool_)
        elif part.watch.needs(end):
            leave = part.watch.leaving(end, logits)
        else:
            leave = np.zeros(len(members), np.bool_)
        for place in np.flatnonzero(leave).tolist():
            found[members[place]] = logits[place : place + 1]
        self.depths[end - 1] += int(leave.sum())
        if leave.all():
            return None
        if not leave.any():
            part.hidden = hidden
            return part
        part.rows, part.hidden = moved_rows(rows, np.flatnonzero(~leave), hidden)
        return part


def moved_rows(
    rows: PackedRows, stay: NDArray[np.int64], hidden: NDArray[np.float32]
) -> tuple[PackedRows, NDArray[np.float32]]:
    """Pack some of the sequences into rows of their own, with their hidden states.

    Args:
        rows: where all lie.
        stay: places in `rows.members` of those that stay, rising.
        hidden: [R, S, H] states.

    Returns:
        The new rows, whose members keep their numbers and their order, and their states.
    """
    lengths = rows.lengths[stay]
    # One call: what fitted before fits again, however the rows are cut.
    (packed,) = pack_rows(lengths, max_tokens=int(lengths.sum()) * int(lengths.max()))
    order = np.argsort(packed.members)
    packed = PackedRows(
        members=rows.members[stay],
        rows=packed.rows[order],
        starts=packed.starts[order],
        lengths=lengths,
        shape=packed.shape,
    )
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sources = np.repeat(rows.first_positions[stay], lengths) + within
    width = hidden.shape[-1]
    moved = np.zeros((packed.shape[0] * packed.shape[1], width), hidden.dtype)
    moved[packed.slots] = hidden.reshape(-1, width)[sources]
    return packed, moved.reshape(*packed.shape, width)
