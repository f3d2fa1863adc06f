"""Numbers that say whether code does more with them than to count."""

from __future__ import annotations

from typing import Any, Callable

# What leaves a number a number that nothing depends on yet.
_COUNTS = ("add", "radd", "sub", "rsub", "mul", "rmul", "neg", "pos", "floordiv", "rfloordiv", "mod", "rmod")
_LOOKS = ("eq", "ne", "lt", "le", "gt", "ge", "bool", "hash", "int", "float", "index", "abs", "round", "truediv", "rtruediv", "pow", "rpow", "divmod", "rdivmod", "and", "or", "xor", "lshift", "rshift", "trunc", "floor", "ceil")


def watched(x: int | float, look: Callable[[], None]) -> Any:
    """x as a number that calls look where code compares or converts it, or takes it as an
    index: it may decide by it then. Sums and products of it are watched too; one that a tensor
    is given is no more."""
    kind = type(x)

    def counting(name: str) -> Any:
        def method(self: Any, *others: Any) -> Any:
            made = getattr(kind, name)(self, *others)
            return watched(made, look) if type(made) in (int, float) else made

        return method

    def looking(name: str) -> Any:
        def method(self: Any, *others: Any) -> Any:
            look()
            return getattr(kind, name)(self, *others)

        return method

    body = {n: make(n) for names, make in ((_COUNTS, counting), (_LOOKS, looking)) for k in names if hasattr(kind, n := f"__{k}__")}
    return type(kind.__name__, (kind,), body)(x)
