"""A task whose fields are the content of its `task.json`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from litebert.errors import CheckpointError
from litebert.settings import Settings
from litebert.tasks.base import FORMAT_VERSION

__all__ = ["StoredTask", "first_fault"]


class StoredTask(Settings):
    """Writes and reads the fields of a task; subclasses add the fields."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in the `TASKS` registry."""

    def to_json(self) -> str:
        """Return the text of `task.json`, one key per line."""
        values = {"format_version": FORMAT_VERSION, "task": self.name} | self.model_dump(
            mode="json", exclude_none=True
        )
        return json.dumps(values, ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, path: Path | None = None) -> Self:
        """Build the task from the parsed `task.json`, format_version and task name taken off.

        Raises:
            CheckpointError: unknown key, wrong type or value.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise CheckpointError(
                f"the task description is not valid: {first_fault(error)}; save the model again",
                path=path,
            ) from error


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a task description in words."""
    item = error.errors()[0]
    where = ".".join(str(part) for part in item["loc"])
    message = item["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
