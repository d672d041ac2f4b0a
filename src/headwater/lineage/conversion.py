"""Conversion of decoded values to types that are prepared when their module is imported."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def converter(kind: type[T]) -> Callable[[Any], T]:
    """A function that converts decoded JSON or the like to `kind`.

    msgspec 0.22 looks at a type when it first meets it, and a second thread that meets the type meanwhile
    ends the process with a segmentation fault. So decoders and converters are made by modules, not by
    functions, which threads may call at once.
    """
    msgspec.json.Decoder(kind)
    return partial(msgspec.convert, type=kind)
