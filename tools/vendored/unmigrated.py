"""What stands for names without a counterpart in JAX."""

from typing import Any, NoReturn


class NotMigrated:
    """Stands for something of torch that has no counterpart in JAX: it may be kept and handed about; using it raises the reason.

    Raises `NotImplementedError` when it is called, indexed, iterated, entered, tested for truth, inherited from or asked for an attribute.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(self.reason)

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __contains__ = __bool__ = __enter__ = __exit__ = _refuse
    __mro_entries__ = _refuse

    def __instancecheck__(self, instance: Any) -> bool:
        raise NotImplementedError(self.reason)

    def __subclasscheck__(self, subclass: Any) -> bool:
        raise NotImplementedError(self.reason)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python and JAX ask any object for
            raise AttributeError(f"{name}: {self.reason}")
        raise NotImplementedError(self.reason)

    def __or__(self, other: Any) -> Any:
        """`X | None` in an annotation."""
        return Any

    __ror__ = __or__


class NoLayer(NotMigrated):
    """Stands for a layer of torch that JAX lacks, in tests of what a module is: nothing here is one."""

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False
