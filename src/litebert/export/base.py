"""What an exporter is, and the rule that no export succeeds without proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from litebert.errors import ExportError
from litebert.export.onnx.source import Source
from litebert.export.verify import Difference, Referee, Runner
from litebert.registry import Registry

__all__ = ["EXPORTERS", "Artifact", "ExportedFile", "Exporter", "Options", "verify"]

Form = Literal["packed", "plain"]


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked for.

    Attributes:
        precisions: number formats, in order.
        is_plain: whether to write plain graphs for other runtimes as well.
        least_agreement: cosine of int8 outputs with torch's, below which nothing is written.
    """

    precisions: tuple[str, ...] = ("fp32", "int8")
    is_plain: bool = True
    least_agreement: float = 0.95


@dataclass(frozen=True, slots=True)
class Artifact:
    """One exported model, not yet on disk.

    Attributes:
        files: path within the folder, with `/` -> content; the first is the one to run.
        form: packed rows, or padded batches.
        precision: number format.
        run: runs it, from these bytes.
        facts: what else is told of it.
    """

    files: Mapping[str, bytes] = field(repr=False)
    form: Form
    precision: str
    run: Runner
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Exporter(Protocol):
    """Writes a model for another runtime. Register it in `EXPORTERS` by its name."""

    precisions: Sequence[str]
    """Number formats it can write."""
    tolerances: Mapping[str, float]
    """Precision -> largest difference allowed, relative where numbers are above 1; int8 has none."""

    def artifacts(self, source: Source, options: Options) -> Iterator[Artifact]:
        """Yield what is exported, one after another.

        Raises:
            ExportError: something of the model cannot be exported.
            MissingDependencyError: a package is missing.
        """
        ...


EXPORTERS: Registry[Callable[[], Exporter]] = Registry("export target")


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """What is known of one exported model.

    Attributes:
        name: path of the file to run, within the folder.
        form: packed rows, or padded batches.
        precision: number format.
        bytes: size of its files.
        difference: how far it is from torch.
        milliseconds: processor time of one text of 128 tokens (or as many as fit), on one thread.
        facts: what else is told of it.
    """

    name: str
    form: Form
    precision: str
    bytes: int
    difference: Difference
    milliseconds: float
    facts: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `export.json`, without digests."""
        found = self.difference
        return {
            "form": self.form,
            "precision": self.precision,
            "bytes": self.bytes,
            "max_difference": found.max_difference,
            "differences": dict(found.largest),
            "agreement": found.agreement,
            "least_token_cosine": found.least_cosine if found.cosines[1] else None,
            "mean_token_cosine": found.mean_cosine if found.cosines[1] else None,
            "probes": found.probes,
            "milliseconds": round(self.milliseconds, 2),
            **self.facts,
        }


def verify(
    artifact: Artifact, exporter: Exporter, referee: Referee, options: Options
) -> ExportedFile:
    """Run an artifact beside torch on every probe.

    Raises:
        ExportError: outputs that differ too much, or are not finite.
    """
    name = next(iter(artifact.files))
    compare = referee.packed if artifact.form == "packed" else referee.plain
    difference = compare(artifact.run)
    milliseconds = referee.milliseconds(artifact.run, is_packed=artifact.form == "packed")
    allowed = exporter.tolerances.get(artifact.precision)
    if allowed is not None and not difference.relative <= allowed:
        raise ExportError(
            f"{name}: outputs differ from torch by {difference.relative:.1e} of their size, allowed "
            f"are {allowed:.0e}; nothing was written. This is a fault of litebert, please report it",
            max_difference=difference.max_difference,
        )
    if allowed is None and not difference.agreement >= options.least_agreement:
        raise ExportError(
            f"{name}: outputs agree with torch's by a cosine of {difference.agreement:.4f}, wanted are "
            f"{options.least_agreement:g}; nothing was written. These weights do not bear integers: "
            "export fp32 or fp16, or quantize with training (litebert quantize)",
            max_difference=difference.max_difference,
        )
    return ExportedFile(
        name,
        artifact.form,
        artifact.precision,
        sum(len(data) for data in artifact.files.values()),
        difference,
        milliseconds,
        artifact.facts,
    )
