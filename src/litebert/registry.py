"""A name -> item table with good errors, used at every extension point.

Registration is an explicit import; there is no folder scanning. Anything outside the project
is reachable by a dotted path `package.module:Name` wherever a registered name is accepted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar, cast

from litebert.errors import SettingsError

T = TypeVar("T")


class Registry(Generic[T]):
    """Items of one kind by name."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._items: dict[str, T] = {}
        self._homes: dict[str, str] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that stores its item under `name`.

        Raises:
            SettingsError: the name is taken.
        """

        def add(item: T) -> T:
            if name in self._items:
                raise SettingsError(f"{self._kind} {name!r} is registered twice")
            self._items[name] = item
            return item

        return add

    def declare(self, module: str, *names: str) -> None:
        """Say that a module registers these names, so that it is imported when one is asked for.

        Where many items exist and a process needs one, it need not pay for the others.
        """
        self._homes |= dict.fromkeys(names, module)

    def get(self, name: str) -> T:
        """Return the item called `name`, or the object at the dotted path `pkg.mod:Name`.

        An object found by its path is registered under it, so that what was used once is known
        from then on, also to readers that import nothing.

        Raises:
            SettingsError: no such name, module or attribute; the module fails to import; what is
                registered can be called and the object cannot.
        """
        if name not in self._items and name in self._homes:
            importlib.import_module(self._homes[name])
        if name in self._items:
            return self._items[name]
        if ":" in name:
            self._items[name] = self._import(name)
            return self._items[name]
        near = get_close_matches(name[:80], list(self), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self)}"
        raise SettingsError(f"unknown {self._kind} {name!r:.80}; {hint}")

    def _import(self, path: str) -> T:
        module_name, _, attribute = path.partition(":")
        try:
            found = getattr(importlib.import_module(module_name), attribute)
        except Exception as error:  # whatever a foreign module raises while it is imported
            reason = f"{type(error).__name__}: {error}"
            raise SettingsError(
                f"cannot import {self._kind} {path!r:.80}: {reason:.300}"
            ) from error
        if not callable(found) and all(map(callable, self._items.values())):
            raise SettingsError(
                f"{self._kind} {path!r:.80} is a {type(found).__name__}; name a function or a class"
            )
        return cast(T, found)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._items | self._homes))

    def __contains__(self, name: object) -> bool:
        return name in self._items or name in self._homes

    def __len__(self) -> int:
        return len(self._items | self._homes)
