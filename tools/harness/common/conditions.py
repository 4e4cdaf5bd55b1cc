"""In what a call differs from the usual one beside its inputs and random numbers. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Attribute(NamedTuple):
    """A plain attribute that a user sets after construction: `path` is dotted, `old` what the constructor set."""

    path: str
    old: Any
    new: Any


class Conditions(NamedTuple):
    """What a user does with a module between its construction and its call."""

    width: str = ""
    """The float dtype to which parameters and buffers are cast in a native call; "" where they keep their own."""
    turned: tuple[str, ...] = ()
    """Dotted paths of submodules that are in the other mode than the rest."""
    attributes: tuple[Attribute, ...] = ()
    beside: tuple[str, ...] = ()
    """Dotted paths of submodules of the original whose own mode is the other one too: a port may have one part for these and for those in `turned`.
    It is not told of them."""
    unsaved: tuple[str, ...] = ()
    """Dotted paths of float buffers that are in no checkpoint and are cast too, where there is a `width`."""

    @classmethod
    def of(cls, data: Sequence[Any]) -> Conditions:
        """From JSON."""
        width, turned, attributes, beside, unsaved = data
        paths = [tuple(map(str, row)) for row in (turned, beside, unsaved)]
        return cls(str(width), paths[0], tuple(Attribute(*row) for row in attributes), paths[1], paths[2])

    @property
    def of_module(self) -> Conditions:
        """Those that make another program of the module: all but the dtypes."""
        return self._replace(width="", unsaved=())


AS_MADE = Conditions()
