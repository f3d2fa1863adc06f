"""Small models of JAX's libraries, each a step to be lowered: MODELS, by name.

A model is a function without arguments that returns the step, its arguments (shapes alone)
and the numbers of those that are given back in place. The first argument's weights are what
placer should count.
"""

import functools
import math

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax

Shape = jax.ShapeDtypeStruct
KEY = jax.eval_shape(lambda: jax.random.PRNGKey(0))


def floats(*shape):
    return Shape(shape, jnp.float32)


def ints(*shape):
    return Shape(shape, jnp.int32)


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


def train(model, x, y, optimizer=None):
    """A training step of a model of Flax's linen, with dropout and running means."""
    optimizer = optimizer or optax.adamw(1e-3)
    variables = jax.eval_shape(lambda k: model.init({"params": k, "dropout": k}, jnp.zeros(x.shape, x.dtype)), KEY)
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}
    state = jax.eval_shape(optimizer.init, params)

    def step(params, rest, opt_state, x, y, key):
        def loss(params):
            out, new = model.apply({"params": params, **rest}, x, rngs={"dropout": key}, mutable=list(rest))
            return cross_entropy(out, y), new

        (value, rest), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), rest, opt_state, value

    return step, (params, rest, state, x, y, KEY), (0, 1, 2)


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(256)(x))
        return nn.Dense(10, name="head")(x)


class Bottleneck(nn.Module):
    width: int
    stride: int

    @nn.compact
    def __call__(self, x):
        norm = functools.partial(nn.BatchNorm, use_running_average=False)
        y = nn.relu(norm()(nn.Conv(self.width, (1, 1), use_bias=False)(x)))
        y = nn.relu(norm()(nn.Conv(self.width, (3, 3), (self.stride,) * 2, use_bias=False)(y)))
        y = norm()(nn.Conv(4 * self.width, (1, 1), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm(name="norm_proj")(nn.Conv(4 * self.width, (1, 1), (self.stride,) * 2, use_bias=False, name="conv_proj")(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (7, 7), (2, 2), use_bias=False, name="conv_init")(x)
        x = nn.max_pool(nn.relu(nn.BatchNorm(use_running_average=False, name="bn_init")(x)), (3, 3), (2, 2), "SAME")
        for i in range(2):
            x = Bottleneck(16 * 2**i, 1 + i)(x)
        return nn.Dense(10)(x.mean((1, 2)))


class Block(nn.Module):
    width: int
    heads: int
    dtype: object = jnp.float32

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(name="ln_1", dtype=self.dtype)(x)
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        y = nn.MultiHeadDotProductAttention(self.heads, name="attn", dtype=self.dtype)(y, y, mask=mask)
        x = x + nn.Dropout(0.1, deterministic=False)(y)
        y = nn.LayerNorm(name="ln_2", dtype=self.dtype)(x)
        return x + nn.Dense(self.width, name="proj", dtype=self.dtype)(nn.gelu(nn.Dense(4 * self.width, name="fc", dtype=self.dtype)(y)))


class GPT(nn.Module):
    dtype: object = jnp.float32
    remat: bool = False

    @nn.compact
    def __call__(self, ids):
        embed = nn.Embed(256, 64, name="wte", dtype=self.dtype)
        x = embed(ids) + nn.Embed(32, 64, name="wpe", dtype=self.dtype)(jnp.arange(ids.shape[1]))
        block = nn.remat(Block) if self.remat else Block
        for i in range(2):
            x = block(64, 4, self.dtype, name=f"h_{i}")(x)
        return embed.attend(nn.LayerNorm(name="ln_f", dtype=self.dtype)(x))


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Block(64, 4, name="block")(x), None


class Scanned(nn.Module):
    """Blocks in one loop over layers."""

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(256, 64, name="wte")(ids)
        x, _ = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=4)(name="layers")(x, None)
        return nn.Dense(256, use_bias=False, name="head")(x)


class LSTM(nn.Module):
    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(256, 64)(ids)
        for i in range(2):
            x = nn.RNN(nn.OptimizedLSTMCell(64), name=f"rnn_{i}")(x)
        return nn.Dense(256)(x)


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        skips = []
        for width in (8, 16):
            x = nn.relu(nn.Conv(width, (3, 3))(x))
            skips.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = nn.relu(nn.Conv(32, (3, 3), feature_group_count=4)(x))
        for width, skip in zip((16, 8), reversed(skips)):
            x = nn.relu(nn.Conv(width, (3, 3), kernel_dilation=2)(jnp.concatenate([nn.ConvTranspose(width, (2, 2), (2, 2))(x), skip], -1)))
        return nn.Dense(10)(x.mean((1, 2)))


class Mixture(nn.Module):
    """Four experts, of which each token has two."""

    @nn.compact
    def __call__(self, x):
        tokens = nn.Embed(256, 32)(x).reshape(-1, 32)
        weight, index = lax.top_k(jax.nn.softmax(nn.Dense(4, name="router")(tokens)), 2)
        chosen = jax.nn.one_hot(index, 4, dtype=jnp.int32)
        slot = ((jnp.cumsum(chosen.reshape(-1, 4), 0) - 1).reshape(chosen.shape) * chosen).sum(-1)
        room = jnp.zeros((4, tokens.shape[0], 32)).at[index, slot].add(tokens[:, None], mode="drop")
        up = self.param("wi", nn.initializers.normal(), (4, 32, 64))
        down = self.param("wo", nn.initializers.normal(), (4, 64, 32))
        out = jnp.einsum("ecf,efd->ecd", nn.relu(jnp.einsum("ecd,edf->ecf", room, up)), down)
        return nn.Dense(256)((out[index, slot] * weight[..., None]).sum(1).reshape(*x.shape, 32))


def decoder():
    """A decoding step of one layer in bfloat16 with a cache that is written in place."""
    d = 64
    params = {k: Shape(s, jnp.bfloat16) for k, s in {"wq": (d, d), "wk": (d, d), "wv": (d, d), "up": (d, 4 * d), "down": (4 * d, d), "head": (d, 256)}.items()}

    def step(params, cache, x, at):
        q, k, v = (x @ params[n] for n in ("wq", "wk", "wv"))
        keys, values = (lax.dynamic_update_slice(c, n[:, None], (0, at, 0)) for c, n in zip(cache, (k, v)))
        scores = jnp.where(jnp.arange(keys.shape[1]) <= at, jnp.einsum("bd,btd->bt", q, keys) / math.sqrt(d), -1e9)
        x = x + jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), values)
        return (keys, values), (x + nn.silu(x @ params["up"]) @ params["down"]) @ params["head"]

    cache = Shape((8, 128, d), jnp.bfloat16)
    return step, (params, (cache, cache), Shape((8, d), jnp.bfloat16), ints()), (1,)


def linen_inference():
    model, x = MLP(), floats(32, 128)
    return model.apply, (jax.eval_shape(model.init, KEY, x), x), ()


def nnx_train():
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(128, 128, rngs=rngs) for _ in range(3)])
            self.norm, self.dropout, self.head = nnx.BatchNorm(128, rngs=rngs), nnx.Dropout(0.1, rngs=rngs), nnx.Linear(128, 10, rngs=rngs)

        def __call__(self, x):
            for layer in self.layers:
                x = nnx.relu(layer(x))
            return self.head(self.dropout(self.norm(x)))

    model = Model(nnx.Rngs(0))
    definition, state = nnx.split((model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)))

    def step(state, x, y):
        model, optimizer = nnx.merge(definition, state)
        loss, grads = nnx.value_and_grad(lambda m: cross_entropy(m(x), y))(model)
        optimizer.update(model, grads)
        return nnx.split((model, optimizer))[1], loss

    return step, (state, floats(32, 128), ints(32)), (0,), nnx.state(model, nnx.Param)


def haiku_train():
    network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([128, 128, 10])(x)))
    params, optimizer = jax.eval_shape(network.init, KEY, floats(32, 128)), optax.sgd(0.1, momentum=0.9)

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(network.apply(p, x), y))(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, jax.eval_shape(optimizer.init, params), floats(32, 128), ints(32)), (0, 1)


def equinox_train():
    params, static = eqx.partition(eqx.nn.MLP(128, 10, 128, 3, key=jax.random.PRNGKey(0)), eqx.is_array)
    optimizer = optax.adam(1e-3)

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(jax.vmap(eqx.combine(p, static))(x), y))(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, optimizer.init(params), floats(32, 128), ints(32)), (0, 1)


MODELS = {
    "MLP": lambda: train(MLP(), floats(32, 128), ints(32)),
    "MLP, inference": linen_inference,
    "ResNet": lambda: train(ResNet(), floats(4, 32, 32, 3), ints(4), optax.sgd(0.1, momentum=0.9)),
    "GPT": lambda: train(GPT(), ints(2, 32), ints(2, 32)),
    "GPT, rematerialised": lambda: train(GPT(remat=True), ints(2, 32), ints(2, 32)),
    "GPT in bfloat16": lambda: train(GPT(jnp.bfloat16), ints(2, 32), ints(2, 32), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))),
    "GPT, layers scanned": lambda: train(Scanned(), ints(2, 32), ints(2, 32), optax.adafactor(1e-3)),
    "LSTM": lambda: train(LSTM(), ints(4, 20), ints(4, 20)),
    "U-Net": lambda: train(UNet(), floats(2, 16, 16, 3), ints(2)),
    "mixture of experts": lambda: train(Mixture(), ints(2, 32), ints(2, 32)),
    "decoding step": decoder,
    "MLP of NNX": nnx_train,
    "MLP of Haiku": haiku_train,
    "MLP of Equinox": equinox_train,
}
