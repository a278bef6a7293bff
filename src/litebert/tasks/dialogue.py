"""What dialogues about a passage share: the turns before a question stand before it.

Each question and answer of theirs is closed by [SEP].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from litebert.tasks.span_task import MAX_SHOWN, PassageTask

if TYPE_CHECKING:
    from litebert.data.dialogues import CoqaQuestion, QuacQuestion
    from litebert.data.question_parts import Turn

__all__ = ["DialogueTask", "most_frequent"]


class DialogueTask(PassageTask):
    """Questions that may rest on the turns before them."""

    max_query_length: int = Field(default=128, ge=1, le=100_000)
    """Tokens of the question and the turns before it; the oldest are cut off."""
    history_turns: int = Field(default=2, ge=0, le=100)
    """Turns before a question that the model sees."""

    def parts(self, history: Sequence[Turn], question: str) -> tuple[str, ...]:
        """Return the texts of the question side; turns without a known answer are questions only."""
        turns = history[len(history) - min(len(history), self.history_turns) :]
        said = (text for turn in turns for text in (turn.question, turn.answer) if text.strip())
        return (*said, question)

    def shown(self, record: QuacQuestion | CoqaQuestion, label: Any) -> dict[str, Any]:
        """Return what identifies and explains a question."""
        return {
            "id": record.id,
            "question": " | ".join(self.parts(record.history, record.question)),
            "context": record.context[:MAX_SHOWN],
            "label": label,
            "file": str(record.path),
            "line": record.line,
        }


def most_frequent(values: Iterable[str | None]) -> str | None:
    """Return the most frequent value; of equally frequent ones the first by name."""
    counts = Counter(value for value in values if value is not None)
    return max(sorted(counts), key=counts.__getitem__) if counts else None
