"""What the page has to know of a model: its files with digests, its task, and what `/info` would say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litebert import __version__
from litebert.errors import ExportError
from litebert.files import check_file
from litebert.tasks.exit_file import EXIT_FILE, read_exit_curve, read_exit_rule

if TYPE_CHECKING:
    from pathlib import Path

    from litebert.runtime.exported import ExportedFolder
    from litebert.text.tokenizer import Tokenizer

__all__ = ["FORMAT_VERSION", "GRAPH_FILE", "TOKENIZER_FILE", "WebModel", "model_name"]

FORMAT_VERSION: Final = 1
GRAPH_FILE: Final = "graph.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
_HEADS: Final = {
    "sequence": "/predict",
    "span": "/v1/qa",
    "span_joint": "/v1/qa",
    "token": "/v1/ner",
    "choice": "/v1/choice",
    "mlm": "/v1/fill-mask",
    "pretraining": "/v1/fill-mask",
}
_MOST_LABELS: Final = 1000


@dataclass(frozen=True, slots=True)
class WebModel:
    """A model that the page can run.

    Attributes:
        folder: its export.
        task: its task; None: an encoder alone.
        notes: what the graph is: head, depth, precision, max_positions, has_stages.
        hidden_size: numbers of a vector.
        tokenizer: of the model.
        kind: of the tokenizer.
    """

    folder: ExportedFolder
    task: Any
    notes: dict[str, Any]
    hidden_size: int
    tokenizer: Tokenizer
    kind: str

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        return self.notes["max_positions"] or self.folder.size("max_position_embeddings")

    def require_page(self) -> None:
        """Refuse what the page has nothing for.

        Raises:
            ExportError: a task over whole dialogues, or a head that answers nothing.
        """
        head: str | None = self.notes["head"]
        is_reader = (head or "").startswith("span")
        if is_reader and not hasattr(self.task, "from_text"):
            raise ExportError(
                f"the task {getattr(self.task, 'name', None)!r} needs a whole dialogue, which the page "
                "cannot ask for; "
                "models of single questions (squad, squad_v2) can be exported for the web",
                path=self.folder.path,
            )
        if head not in (None, "embedding", *_HEADS):
            raise ExportError(
                f"the head is {head!r}, which answers nothing that the page can show; train the folder "
                "for a task, and export it again",
                path=self.folder.path,
            )

    def routes(self) -> list[str]:
        """Return the routes that the page answers."""
        task, head = self.task, self.notes["head"]
        found = ["/embed", "/similarity", "/tokenize"]
        is_ordered = getattr(task, "is_pair", False) and task.kind in ("binary", "regression")
        if hasattr(task, "decode"):
            found += ["/predict", "/rerank"] if is_ordered else ["/predict"]
        elif task is None or task.head == "embedding":
            found.append("/rerank")
        own = _HEADS.get(head or "")
        if own is not None and own != "/predict":
            found.append(own)
        return sorted(found)

    def manifest(self, name: str, files: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the content of `model/manifest.json`.

        Args:
            name: of the model.
            files: path from the manifest -> `bytes` and `sha256`.
        """
        notes = self.notes
        return {
            "format_version": FORMAT_VERSION,
            "litebert": __version__,
            "files": files,
            "graph": {
                "file": GRAPH_FILE,
                "head": notes["head"],
                "depth": notes["depth"],
                "precision": notes["precision"],
                "hidden_size": self.hidden_size,
                "max_positions": self.max_positions,
            },
            "tokenizer": {"file": TOKENIZER_FILE, "kind": self.kind},
            "task": None if self.task is None else json.loads(self.task.to_json()),
            "settings": {"pooling": "mean", "depth": None, "exit": None},
            "exits": self._chosen_exit(),
            "info": self._info(name),
        }

    def _chosen_exit(self) -> dict[str, Any] | None:
        """What `exit` auto means: the rule and the depths at most that `litebert exits` chose.

        Raises:
            CheckpointError: its file is damaged.
        """
        if check_file(self.folder.path / EXIT_FILE) is None:
            return None
        rule, depth = read_exit_rule(self.folder.path)
        return {"rule": "" if rule is None else str(rule), "depth": depth}

    def _info(self, name: str) -> dict[str, Any]:
        task, notes = self.task, self.notes
        labels: dict[int, str] = {} if task is None else task.config_labels()
        precision = notes["precision"]
        is_many = getattr(task, "kind", "") == "multilabel"
        return {
            "model_id": name,
            "model_dtype": {"fp32": "float32", "fp16": "float16"}.get(precision, precision),
            "version": __version__,
            "task": None if task is None else task.name,
            "head": notes["head"],
            "routes": self.routes(),
            "labels": [labels[i] for i in sorted(labels)][:_MOST_LABELS],
            "is_pair": bool(getattr(task, "is_pair", False)),
            "kind": getattr(task, "kind", None),
            "threshold": getattr(task, "threshold", None) if is_many else None,
            "text_columns": list(getattr(task, "text_columns", ())),
            "max_input_length": self.max_positions,
            "task_max_length": getattr(task, "max_length", None),
            "max_client_batch_size": 32,
            "depths": notes["depth"],
            "depth": None,
            "exit": None,
            "exits": notes["has_stages"] and notes["head"] == "sequence",
            "curve": read_exit_curve(self.folder.path),
            "hidden_size": self.hidden_size,
            "vocab_size": self.tokenizer.vocab_size,
            "mask_token": self.tokenizer.token(self.tokenizer.mask_id),
            "models": [name],
        }


def model_name(folder: Path) -> str:
    """Return a name for the model of a folder: letters, digits, points and dashes."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip(".-_")
    return name[:96] or "model"
