"""Products of which the model takes columns apart: queries, keys and values by one layer.

Each part is cut by itself. The rows of the weight (columns, of a transposed layer) are put in the
order of the ranks, the first one's of each part, the second one's, so that a rank's are
neighbours; states are in the model's."""

from __future__ import annotations

from typing import Any, Collection, Mapping, Sequence, cast

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard

from .local import of_local, to_local
from .names import plain
from .products import dimension

Sizes = tuple[int, ...]


class Order:
    """The order of the columns of products that have parts of these sizes, by module."""

    def __init__(self, parts: Mapping[str, Sizes], ranks: int, transposed: Collection[str] = ()):
        """transposed: modules whose weight has columns where others have rows."""
        self._index = {plain(f"{path}.{name}"): index(sizes, ranks) for path, sizes in parts.items() for name in ("weight", "bias", "in_proj_weight", "in_proj_bias")}
        self._columns = {plain(f"{path}.weight") for path in transposed}

    def arranged(self, name: str, x: Any) -> Any:
        """Of a parameter, or of its optimizer's state, as the model has it: as ranks do."""
        return x.index_select(self._dimension(name), self._index[plain(name)].to(x.device)) if self._of(name, x) else x

    def restored(self, name: str, x: Any) -> Any:
        """The other way round."""
        return x.index_select(self._dimension(name), self._index[plain(name)].argsort().to(x.device)) if self._of(name, x) else x

    def _of(self, name: str, x: Any) -> bool:
        d = self._dimension(name)
        at = self._index.get(plain(name))
        return at is not None and isinstance(x, torch.Tensor) and x.dim() > d and x.shape[d] == len(at)

    def _dimension(self, name: str) -> int:
        return int(plain(name) in self._columns)


def index(sizes: Sizes, ranks: int) -> torch.Tensor:
    """[columns]: which column of the model's is at each place of the ranks'."""
    each = torch.arange(sum(sizes)).split(list(sizes))
    return torch.cat([part.chunk(ranks)[k] for k in range(ranks) for part in each])


def arrange(module: nn.Module, sizes: Sizes, ranks: int) -> None:
    """Puts the columns of a product, in its module's whole parameters, in the order of ranks."""
    at = index(sizes, ranks)
    with torch.no_grad():
        for name, p in module.named_parameters(recurse=False):
            p.copy_(p.index_select(dimension(module, name), at.to(p.device)))


def split(module: nn.Module, sizes: Sizes) -> None:
    """The output of module, cut by columns, is taken apart by parts of these sizes."""
    module.register_forward_hook(lambda m, inputs, output: Parted(output, sizes))


class Parted(torch.Tensor):
    """What a product cut by columns makes, in which each rank has its columns of each part. The
    model's code has the parts as DTensors cut by columns; whatever else it does is done on the
    whole, gathered in the model's order."""

    product: DTensor  # its columns in the order of the ranks
    sizes: Sizes

    def __new__(cls, product: torch.Tensor, sizes: Sizes) -> Parted:
        made: Parted = torch.Tensor._make_wrapper_subclass(cls, product.shape, strides=product.stride(), dtype=product.dtype, device=product.device)
        made.product, made.sizes = cast(DTensor, product), sizes
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Parted({list(self.sizes)} of {self.product})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            name = _name(func)
            if args and isinstance(args[0], Parted):
                x, rest = args[0], args[1:]
                if name in _FACTS:
                    return func(x.product, *rest, **kwargs)
                if name in _EACH and not any(isinstance(a, torch.Tensor) for a in (*rest, *kwargs.values())):
                    return Parted(func(x.product, *rest, **kwargs), x.sizes)
                found = _taken(x, name, rest, kwargs)
                if found is not None:
                    return found
            whole = torch.utils._pytree.tree_map_only(Parted, Parted.whole, (tuple(args), kwargs))
            return func(*whole[0], **whole[1])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:  # type: ignore[override]
        raise TypeError(f"{func} of columns that are cut by parts")

    def whole(self) -> DTensor:
        """On every rank, in the model's order."""
        there = self.product.redistribute(placements=[Replicate()])
        order = index(self.sizes, there.device_mesh.size()).argsort().to(there.device)
        return of_local(to_local(there, [Replicate()])[..., order], there.device_mesh, [Replicate()])

    def columns(self, begin: int, end: int) -> torch.Tensor:
        """Columns begin to end of the model's order: a part, several, or of the whole."""
        at = [0]
        for size in self.sizes:
            at.append(at[-1] + size)
        if begin not in at or end not in at or begin >= end:
            return self.whole()[..., begin:end]
        ranks = self.product.device_mesh.size()
        made = self._cut(self._local()[..., begin // ranks : end // ranks], -1)
        sizes = self.sizes[at.index(begin) : at.index(end)]
        return made if len(sizes) == 1 else Parted(made, sizes)

    def viewed(self, shape: Sequence[int]) -> torch.Tensor | None:
        """In a shape whose end has the parts as a dimension, [parts, heads, width], or the
        columns as they are; None where it has neither."""
        n, ranks = self.shape[-1], self.product.device_mesh.size()
        known = -self.product.numel() // _count(shape) if -1 in shape else 1
        shape = [known if s == -1 else int(s) for s in shape]
        if _count(shape) != self.product.numel():
            return None
        if shape and shape[-1] == n:
            return Parted(self.product.reshape(shape), self.sizes)
        for k in range(len(shape) - 2, -1, -1):
            if _count(shape[k:]) == n:
                if shape[k] != len(self.sizes) or len(set(self.sizes)) > 1 or shape[k + 1] % ranks:
                    return None
                here = [*shape[: k + 1], shape[k + 1] // ranks, *shape[k + 2 :]]
                return self._cut(self._local().reshape(here), k + 1)
        return None

    def _cut(self, local: torch.Tensor, dimension: int) -> DTensor:
        """What ranks have equal parts of, by a dimension; local is this one's."""
        return of_local(local, self.product.device_mesh, [Shard(dimension % local.dim())])

    def _local(self) -> torch.Tensor:
        return to_local(self.product, self.product.placements)


_FACTS = {"shape", "dtype", "device", "ndim", "is_cuda", "is_cpu", "is_meta", "layout", "requires_grad", "is_leaf", "size", "dim", "ndimension", "numel", "nelement", "element_size", "is_floating_point", "is_complex", "get_device", "sym_size", "__len__", "is_sparse", "is_quantized", "is_nested"}
_EACH = {"clamp", "clamp_min", "clamp_max", "clip", "to", "float", "double", "half", "bfloat16", "type", "_to_copy", "contiguous", "clone", "detach"}


def _name(func: Any) -> str:
    """`split` of torch.split, Tensor.split and aten.split.Tensor, `shape` of its getter."""
    if isinstance(func, torch._ops.OpOverload):
        return str(func._schema.name.rpartition("::")[2])
    name = str(getattr(func, "__name__", ""))
    return str(getattr(getattr(func, "__self__", None), "__name__", "")) if name == "__get__" else name


def _taken(x: Parted, name: str, rest: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What an op that takes x apart or views it makes of its parts; None of any other."""
    n = x.shape[-1]
    given = [*rest, *(v for k, v in kwargs.items() if k not in ("dim", "self", "input", "tensor"))]
    if name in ("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "chunk", "unsafe_chunk", "tensor_split"):
        dim = kwargs.get("dim", rest[1] if len(rest) > 1 else 0)
        how = given[0] if given else None
        if dim not in (-1, x.dim() - 1) or how is None or isinstance(how, torch.Tensor):
            return None
        with torch.device("meta"):
            ends = [len(part) for part in getattr(torch, name if "chunk" in name or name == "tensor_split" else "split")(torch.empty(n), how)]
        made, begin = [], 0
        for size in ends:
            made.append(x.columns(begin, begin + size))
            begin += size
        return tuple(made)
    if name in ("narrow", "slice"):
        dim, begin, length = (*given, 0, None, None)[:3] if "dim" not in kwargs else (kwargs["dim"], *(*given, None, None)[:2])
        if dim not in (-1, x.dim() - 1) or len(given) > 3 and given[3] != 1:
            return None
        end = n if length is None else begin + length if name == "narrow" else length
        return _sliced(x, slice(begin, end))
    if name == "__getitem__":
        key = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        ahead = key[:-1]
        whole = all(k is Ellipsis or isinstance(k, slice) and k == slice(None) for k in ahead)
        if whole and isinstance(key[-1], slice) and (Ellipsis in ahead or len(key) == x.dim()):
            return _sliced(x, key[-1])
        return None
    if name in ("view", "reshape", "_unsafe_view", "unflatten"):
        shape = given[0] if len(given) == 1 and not isinstance(given[0], int) else given
        if name == "unflatten":
            dim = kwargs.get("dim", rest[0])
            sizes = kwargs.get("sizes", rest[-1])
            shape = (*x.shape[:-1], *sizes) if dim in (-1, x.dim() - 1) else (None,)
        return x.viewed(shape) if all(isinstance(s, int) for s in shape) else None
    return None


def _sliced(x: Parted, of: slice) -> torch.Tensor | None:
    begin, end, step = of.indices(x.shape[-1])
    return x.columns(begin, end) if step == 1 else None


def _count(shape: Sequence[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n
