"""Names of modules and parameters without what wrappers put into them."""

from __future__ import annotations

_WRAPPERS = ("_checkpoint_wrapped_module.", "_orig_mod.")


def plain(name: str) -> str:
    """`h.0.attn` of `h.0._checkpoint_wrapped_module.attn`."""
    for w in _WRAPPERS:
        name = f"{name}.".replace(w, "").removesuffix(".")
    return name
