"""The exported graph beside torch: the same sequences alone, together, padded, and at several depths."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.errors import ExportError
from litebert.export.probes import Probe, packed_probes, padded_inputs
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.packing import Packing
from litebert.model.span_layout import END_COLUMN, RANK_COLUMN, START_BEAM

__all__ = ["Difference", "Referee", "Runner", "compare_one", "reference"]

Array = NDArray[Any]
Runner = Callable[[Mapping[str, Array]], dict[str, Array]]
"""Runs an exported file: inputs by name -> outputs by name."""

EXTRAS: Final = frozenset({"exit_depth", "hidden_out"})
"""Outputs of a packed graph that torch has no twin of."""
MASKED: Final = -1e29
"""Log-probabilities below mean "cannot be", whatever the number."""


@dataclass(slots=True)
class Difference:
    """How far an exported file is from torch.

    Attributes:
        largest: largest absolute difference of each output.
        scale: largest number of each output in torch.
        least_cosine: of the hidden state of one token.
        cosines: sum and count, for the mean.
        products: of each output: ours with theirs, ours and theirs with themselves, summed.
        probes: how many were compared.
    """

    largest: dict[str, float] = field(default_factory=dict[str, float])
    scale: dict[str, float] = field(default_factory=dict[str, float])
    least_cosine: float = 1.0
    cosines: tuple[float, int] = (0.0, 0)
    products: dict[str, Array] = field(default_factory=dict[str, Array])
    probes: int = 0

    @property
    def mean_cosine(self) -> float:
        """Mean over tokens."""
        return self.cosines[0] / max(1, self.cosines[1])

    @property
    def max_difference(self) -> float:
        """Largest absolute difference of all outputs."""
        return max(self.largest.values(), default=0.0)

    @property
    def relative(self) -> float:
        """Largest difference of an output over its largest number, where that is above 1."""
        return max(
            (value / max(1.0, self.scale[name]) for name, value in self.largest.items()),
            default=0.0,
        )

    @property
    def agreement(self) -> float:
        """Cosine of an output with torch's over everything that was compared; the least of all."""
        return min(
            (both / max(float(np.sqrt(ours * theirs)), 1e-30) if theirs else 1.0)
            for both, ours, theirs in self.products.values()
        )

    def note(self, name: str, found: Array, wanted: Array) -> None:
        """Take in one output of one probe.

        Raises:
            ExportError: another shape, or numbers that are not finite.
        """
        if found.shape != wanted.shape:
            raise ExportError(f"output {name} has shape {found.shape}, torch gives {wanted.shape}")
        if not np.isfinite(found).all():
            raise ExportError(f"output {name} has numbers that are not finite")
        far = (found < MASKED) & (wanted < MASKED)
        gap = np.abs(np.where(far, 0.0, found.astype(np.float64) - wanted))
        size = np.abs(np.where(far, 0.0, wanted))
        self.largest[name] = max(self.largest.get(name, 0.0), float(gap.max(initial=0.0)))
        self.scale[name] = max(self.scale.get(name, 0.0), float(size.max(initial=0.0)))
        ours, theirs = np.where(far, 0.0, found.astype(np.float64)), np.where(far, 0.0, wanted)
        sums = np.array([(ours * theirs).sum(), (ours * ours).sum(), (theirs * theirs).sum()])
        self.products[name] = self.products.get(name, np.zeros(3)) + sums
        if name == "last_hidden_state" and found.size:
            norms = np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted, axis=-1)
            cosine = (found * wanted).sum(-1) / np.maximum(norms, 1e-12)
            self.least_cosine = min(self.least_cosine, float(cosine.min()))
            total, count = self.cosines
            self.cosines = (total + float(cosine.sum()), count + cosine.size)


def reference(
    model: AlbertModel | AlbertWithHead, probe: Probe, padded: torch.Tensor | None = None
) -> dict[str, list[Array]]:
    """Return what torch gives: outputs by the names of a graph, one array for each sequence.

    Args:
        model: in evaluation mode.
        probe: the sequences.
        padded: mask of a padded batch, whose columns are the positions; None: places in the sequence.
    """
    lengths = [len(ids) for ids in probe.sequences]
    packing = Packing.from_lengths(lengths) if padded is None else Packing.from_mask(padded)
    ids = torch.from_numpy(np.concatenate(probe.sequences))
    types = torch.from_numpy(np.concatenate(probe.types))
    encoder = model.model if isinstance(model, AlbertWithHead) else model
    before = encoder.encoder.active_depth
    # Not by set_active_depth: here some stored weights may stay idle.
    encoder.encoder.active_depth = probe.depth or before
    try:
        with torch.no_grad():
            return _outputs(model, ids, packing, types)
    finally:
        encoder.encoder.active_depth = before


def _outputs(
    model: AlbertModel | AlbertWithHead, ids: torch.Tensor, packing: Packing, types: torch.Tensor
) -> dict[str, list[Array]]:
    def by_token(values: torch.Tensor) -> list[Array]:
        return [part.float().numpy() for part in values.split(packing.lengths)]

    def by_sequence(values: torch.Tensor) -> list[Array]:
        return list(values.float().numpy())

    if not isinstance(model, AlbertWithHead):
        encoded = model.forward_packed(ids, packing, types)
        found = {"last_hidden_state": by_token(encoded.last_hidden_state)}
        if encoded.pooler_output is not None:
            found["pooler_output"] = by_sequence(encoded.pooler_output)
        return found
    ones = torch.ones(packing.num_sequences, dtype=torch.int64)
    sizes = ones if model.head == "choice" else None
    output = model.forward_packed(ids, packing, types, group_sizes=sizes)
    found = {"last_hidden_state": by_token(output.last_hidden_state)}
    logits = output.logits
    if isinstance(logits, dict):
        found["prediction_logits"] = by_token(logits["mlm"])
        found["sop_logits"] = by_sequence(logits["sentence_order"])
    elif model.head == "span":
        found["start_logits"] = by_token(logits[:, 0])
        found["end_logits"] = by_token(logits[:, 1])
    elif model.head == "embedding":
        found["sentence_embedding"] = by_sequence(logits)
    elif model.head == "choice":
        found["logits"] = by_sequence(logits[:, None])
    elif model.head in ("token", "mlm", "span_joint"):
        found["logits"] = by_token(logits)
    else:
        found["logits"] = by_sequence(logits)
    return found


class Referee:
    """Compares exported files of one model with torch, whose answers it remembers."""

    def __init__(self, model: AlbertModel | AlbertWithHead) -> None:
        self.model = model
        self._probes = list(packed_probes(model))
        self._known: dict[tuple[int, str], dict[str, list[Array]]] = {}

    def packed(self, run: Runner) -> Difference:
        """Run a packed graph on every probe.

        Raises:
            ExportError: outputs of another shape or name, or numbers that are not finite.
        """
        difference = Difference()
        for number, probe in enumerate(self._probes):
            wanted = self._wanted(
                number, "packed", lambda probe=probe: reference(self.model, probe)
            )
            compare_one(self.model, run, probe, difference, wanted)
            is_many = len(probe.sequences) > 1 and probe.depth is None
            if is_many and self.model.config.num_hidden_layers > 1:
                compare_one(self.model, _in_stages(run), probe, difference, wanted)
        return difference

    def plain(self, run: Runner) -> Difference:
        """Run a plain graph on every batch of probes, padded on the right, then on the left.

        Raises:
            ExportError: as `packed`.
        """
        difference = Difference()
        seen: set[tuple[int, ...]] = set()
        for number, probe in enumerate(self._probes):
            key = tuple(len(ids) for ids in probe.sequences)
            if probe.depth is not None or key in seen:
                continue
            seen.add(key)
            for side in ("right", "left") if len(key) > 1 else ("right",):
                inputs, places = padded_inputs(probe, is_left=side == "left")
                mask = torch.from_numpy(inputs["attention_mask"])
                wanted = self._wanted(
                    number,
                    side,
                    lambda probe=probe, mask=mask: reference(self.model, probe, padded=mask),
                )
                _compare_padded(self.model, run(inputs), wanted, places, difference)
        return difference

    def milliseconds(self, run: Runner, *, is_packed: bool) -> float:
        """Return the least of three: processor time of one text of 128 tokens, or as many as fit."""
        alone = [p for p in self._probes if len(p.sequences) == 1 and p.slots <= 128]
        probe = max(alone, key=lambda p: p.slots)
        inputs = probe.inputs()[0] if is_packed else padded_inputs(probe, is_left=False)[0]
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            run(inputs)
            times.append(time.process_time() - start)
        return 1000 * min(times)

    def _wanted(
        self, number: int, kind: str, compute: Callable[[], dict[str, list[Array]]]
    ) -> dict[str, list[Array]]:
        if (number, kind) not in self._known:
            self._known[number, kind] = compute()
        return self._known[number, kind]


def _in_stages(run: Runner) -> Runner:
    """Run one depth, hand its hidden states back, and run the rest."""

    def staged(inputs: Mapping[str, Array]) -> dict[str, Array]:
        one = np.array(1, np.int64)
        first = run({**inputs, "depth": one})
        hidden = first.get("hidden_out", first["last_hidden_state"])
        return run({**inputs, "start_depth": one, "hidden_in": hidden})

    return staged


def compare_one(
    model: AlbertModel | AlbertWithHead,
    run: Runner,
    probe: Probe,
    difference: Difference,
    wanted: dict[str, list[Array]],
) -> None:
    """Compare one probe of a packed graph.

    Raises:
        ExportError: as `Referee.packed`.
    """
    head = model.head if isinstance(model, AlbertWithHead) else None
    inputs, slots = probe.inputs()
    found = {name: value for name, value in run(inputs).items() if name not in EXTRAS}
    if set(found) != set(wanted):
        raise ExportError(f"outputs are {sorted(found)}, expected {sorted(wanted)}")
    difference.probes += 1
    masked = set(inputs["masked_positions"].tolist())
    for name, values in found.items():
        for number, at in enumerate(slots):
            theirs = wanted[name][number]
            if name == "last_hidden_state" or _is_by_token(head, name):
                ours = values.reshape(-1, *values.shape[2:])[at]
            elif name == "prediction_logits" or (head == "mlm" and name == "logits"):
                before = sum(1 + len(part) // 3 for part in slots[:number])
                kept = [place for place, slot in enumerate(at) if int(slot) in masked]
                ours, theirs = values[before : before + len(kept)], theirs[kept]
            else:
                ours = values[number]
            if head == "span_joint" and name == "logits":
                ours, theirs = _comparable_spans(ours, theirs)
            difference.note(name, ours, theirs)


def _is_by_token(head: str | None, name: str) -> bool:
    return name in ("start_logits", "end_logits") or (
        head in ("token", "span_joint") and name == "logits"
    )


def _comparable_spans(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """Leave out ends after starts that no token has."""
    ranks = set(theirs[:, RANK_COLUMN].astype(int).tolist())
    idle = [END_COLUMN + k for k in range(START_BEAM) if k not in ranks]
    ours, theirs = ours.copy(), theirs.copy()
    ours[:, idle] = theirs[:, idle] = 0.0
    return ours, theirs


def _compare_padded(
    model: AlbertModel | AlbertWithHead,
    found: dict[str, Array],
    wanted: dict[str, list[Array]],
    places: list[slice],
    difference: Difference,
) -> None:
    head = model.head if isinstance(model, AlbertWithHead) else None
    if not set(found) <= set(wanted) or not found:
        raise ExportError(f"outputs are {sorted(found)}, expected some of {sorted(wanted)}")
    difference.probes += 1
    for name, values in found.items():
        is_by_token = (
            _is_by_token(head, name)
            or name in ("last_hidden_state", "prediction_logits")
            or (head == "mlm" and name == "logits")
        )
        for row, at in enumerate(places):
            ours, theirs = values[row, at] if is_by_token else values[row], wanted[name][row]
            if head == "span_joint" and name == "logits":
                ours, theirs = _comparable_spans(ours, theirs)
            difference.note(name, ours, theirs)
