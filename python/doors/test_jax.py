"""Steps of real JAX models read by placer, beside what JAX and XLA say of them, and a map
that `placer export --to jax` writes, applied to a model on two CPU devices.

Run by `make test-doors`: python test_jax.py PLACER [MODEL ...]
"""

import json
import math
import os
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax_models import MODELS, train

PLACER = os.path.abspath(sys.argv[1])
FORMS = ("StableHLO", "StableHLO with names", "HLO", "HLO with names", "HloModuleProto", "HLO, optimised")
NAMELESS = FORMS[0]  # its arguments have no names


def placer(*args):
    done = subprocess.run([PLACER, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"placer {' '.join(map(str, args))}: {done.stderr}")
    return done.stdout


def products(jaxpr, times=1):
    """FLOPs of the products and convolutions of a jaxpr, with the trip counts of scans: no compiler's count."""
    flops = 0
    for e in jaxpr.eqns:
        out = math.prod(e.outvars[0].aval.shape) if e.outvars else 0
        if e.primitive.name == "dot_general":
            (over, _), _ = e.params["dimension_numbers"]
            flops += 2 * times * out * math.prod(e.invars[0].aval.shape[i] for i in over)
        elif e.primitive.name == "conv_general_dilated":
            kernel = e.invars[1].aval.shape
            features = kernel[e.params["dimension_numbers"].rhs_spec[0]]
            flops += 2 * times * out * math.prod(kernel) // features // math.prod(e.params["lhs_dilation"])
        else:
            inner = times * (e.params["length"] if e.primitive.name == "scan" else 1)
            for value in e.params.values():
                for one in value if isinstance(value, (tuple, list)) else [value]:
                    if hasattr(one, "jaxpr"):
                        flops += products(one.jaxpr, inner)
                    elif hasattr(one, "eqns"):
                        flops += products(one, inner)
    return flops


def size(tree):
    """The floats in a tree, and the bytes of all that is in it."""
    leaves = jax.tree.leaves(tree)
    return (sum(math.prod(a.shape) for a in leaves if jnp.issubdtype(a.dtype, jnp.floating)),
            sum(math.prod(a.shape) * a.dtype.itemsize for a in leaves if not jax.dtypes.issubdtype(a.dtype, jax.dtypes.extended)))


def read(path):
    """What placer reads in a file: FLOPs of products, of all, parameters, bytes of variables, modules."""
    own = path + ".json"
    placer("import", "--graph", path, "-o", own)
    with open(own) as f:
        ops = json.load(f)["ops"]
    gemms = sum(2 * math.prod(o["gemm"]) * (o.get("repeats") or 1) for o in ops if "gemm" in o)
    return (gemms, sum(o.get("flops", 0) for o in ops), sum(o.get("params", 0) for o in ops),
            sum(o.get("resident", 0) for o in ops if o["kind"] == "VariableV2"), {o["module"] for o in ops if o.get("module")})


def test_costs(tmp):
    """Products, parameters and bytes of what stays on the device, in all forms of a step."""
    print("| step | parameters | products | all that placer counts | XLA's count | placer's, after XLA |\n|---|---:|---:|---:|---:|---:|")
    for name in sys.argv[2:] or MODELS:
        step, args, donated, *weights = MODELS[name]()
        lowered = jax.jit(step, donate_argnums=donated).lower(*args)
        compiled = lowered.compile()
        want = products(jax.make_jaxpr(step)(*args).jaxpr)
        params, _ = size(weights[0] if weights else args[0])
        stays = size([args[i] for i in {0, *donated}])[1]
        texts = {
            "StableHLO": lowered.as_text(), "StableHLO with names": lowered.as_text(debug_info=True),
            "HLO": lowered.as_text(dialect="hlo"), "HLO with names": lowered.as_text(dialect="hlo", debug_info=True),
            "HloModuleProto": lowered.compiler_ir("hlo").as_serialized_hlo_module_proto(), "HLO, optimised": compiled.as_text(),
        }
        for form in FORMS:
            path = os.path.join(tmp, "step")
            with open(path, "wb") as f:
                f.write(texts[form] if isinstance(texts[form], bytes) else texts[form].encode())
            got = read(path)
            # One product per loop stands for all in it: rounded. XLA replaces convolutions of images as small as their kernels.
            near = 0.1 if form == FORMS[-1] else 0.001
            assert abs(got[0] / want - 1) < near, (name, form, got[0], want)
            if form != NAMELESS or donated[:1] == (0,):
                assert got[2] == params, (name, form, got[2], params)
                # What no one reads, such as a random key that no dropout takes, is not among a step's arguments.
                assert 0.999 < got[3] / stays < 1.001, (name, form, got[3], stays)
            if "names" in form and name != "decoding step":
                assert got[4], (name, form)
            if form == "HLO with names":
                before = got
        xla = lowered.cost_analysis()["flops"]
        print(f"| {name} | {params:,} | {before[0] / 1e6:.2f} | {before[1] / 1e6:.2f} | {xla / 1e6:.2f} | {got[1] / 1e6:.2f} |", flush=True)


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(64, name="down")(nn.tanh(nn.Dense(256, name="up")(x)))


class Model(nn.Module):
    blocks: int = 4

    @nn.compact
    def __call__(self, x):
        for i in range(self.blocks):
            x = Block(name=f"h_{i}")(x)
        return nn.Dense(10, name="head")(x)


def test_map(tmp):
    """A step cut by a map of modules: parameters and state by their names, blocks one after another on their devices."""
    model, optimizer = Model(), optax.adam(1e-2)
    x, y = jax.random.normal(jax.random.PRNGKey(1), (32, 64)), jnp.arange(32) % 10
    params = model.init(jax.random.PRNGKey(0), x)["params"]
    state = {k: optimizer.init(p) for k, p in params.items()}  # Optax compiles functions of a whole tree, which has to be on one device

    def loss_of(logits, y):
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    def update(params, state, grads):
        new = {k: optimizer.update(grads[k], state[k], params[k]) for k in params}
        return {k: optax.apply_updates(params[k], new[k][0]) for k in params}, {k: new[k][1] for k in params}

    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(lambda p: loss_of(model.apply({"params": p}, x), y))(params)
        return *update(params, state, grads), loss

    graph, plan = os.path.join(tmp, "step.mlir"), os.path.join(tmp, "plan.json")
    with open(graph, "w") as f:
        f.write(jax.jit(step, donate_argnums=(0, 1)).lower(params, state, x, y).as_text(debug_info=True))
    # The best plan of so small a step is one device: a map that cuts it in two is given.
    with open(plan, "w") as f:
        json.dump({"format": "placer jax 1", "device": {"Model.h_0": 0, "Model.h_1": 0, "Model.h_2": 1, "Model.h_3": 1, "Model.head": 1}}, f)
    out = os.path.join(tmp, "plan.jax")
    machine = ("--graph", graph, "--gpu", "a100", "--gpus", 2)
    placer("export", *machine, "--plan", plan, "--to", "jax", "-o", out)
    placer("simulate", *machine, "--plan", out)
    with open(out) as f:
        device = json.load(f)["device"]

    # docs/doors.md shows these lines.
    def place(tree, name):
        """The leaves of an argument, each on its device of the map; scalars stay free to be anywhere."""
        def put(path, leaf):
            at = device.get(name + jax.tree_util.keystr(path), device.get("", 0))
            return jax.device_put(leaf, jax.devices()[at]) if leaf.ndim else leaf
        return jax.tree_util.tree_map_with_path(put, tree)

    block, head = jax.jit(Block().apply), jax.jit(nn.Dense(10).apply)

    def placed_loss(params, x, y):
        for i in range(model.blocks):
            x = jax.device_put(x, jax.devices()[device[f"Model.h_{i}"]])
            x = block({"params": params[f"h_{i}"]}, x)
        last = jax.devices()[device["Model.head"]]
        return loss_of(head({"params": params["head"]}, jax.device_put(x, last)), jax.device_put(y, last))

    def placed_step(params, state, x, y):
        loss, grads = jax.value_and_grad(placed_loss)(params, x, y)
        return *update(params, state, grads), loss

    def losses(step, params, state):
        got = []
        for _ in range(5):
            params, state, loss = step(params, state, x, y)
            got.append(float(loss))
        return params, got

    whole, want = losses(jax.jit(step), params, state)
    placed, got = losses(placed_step, place(params, "params"), place(state, "state"))
    used = {d.id for leaf in jax.tree.leaves(placed) for d in leaf.devices()}
    assert used == {0, 1}, used
    for i in range(model.blocks):
        on = {d.id for leaf in jax.tree.leaves(placed[f"h_{i}"]) for d in leaf.devices()}
        assert on == {device[f"Model.h_{i}"]}, (i, on)
    # Blocks compiled by themselves are fused otherwise than in one program: the last bits differ.
    assert all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(want, got)), (want, got)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, jax.device_put(b, jax.devices()[0]), atol=1e-4), whole, placed))
    named = [k for k in device if "[" in k]
    print(f"jax: {len(device) - len(named)} modules and {len(named)} arguments on two devices, 5 losses equal to 5 digits: {got[0]:.6f} to {got[-1]:.6f}")


class Wide(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(1024)(x))
        return nn.Dense(10, name="head")(x)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        y = nn.LayerNorm(name="ln")(x)
        q, k, v = (nn.DenseGeneral((8, 32), use_bias=False, name=n)(y) for n in "qkv")
        weights = nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
        x = x + nn.DenseGeneral(256, axis=(-2, -1), name="o")(jnp.einsum("bhts,bshd->bthd", weights, v))
        return x + nn.Dense(256, name="down")(nn.gelu(nn.Dense(1024, name="up")(x))), None


class Deep(nn.Module):
    """Six layers in one loop, which keeps what each makes, or computes it again."""
    remat: bool = False

    @nn.compact
    def __call__(self, ids):
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        x, _ = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=6)(name="layers")(nn.Embed(1000, 256, name="wte")(ids), None)
        return nn.Dense(1000, name="head")(x)


def test_memory(tmp):
    """A step's peak as a map is judged, fused and with updates in place, beside what XLA allocates."""
    x, y = jax.ShapeDtypeStruct((256, 512), jnp.float32), jax.ShapeDtypeStruct((256,), jnp.int32)
    ids = jax.ShapeDtypeStruct((8, 256), jnp.int32)
    for name, (step, args, donated) in {
        "an MLP with sgd": train(Wide(), x, y, optax.sgd(1e-3)), "an MLP with adam": train(Wide(), x, y, optax.adam(1e-3)),
        "a loop over layers": train(Deep(), ids, ids, optax.adam(1e-3)), "a loop that computes layers again": train(Deep(remat=True), ids, ids, optax.adam(1e-3)),
    }.items():
        lowered = jax.jit(step, donate_argnums=donated).lower(*args)
        memory = lowered.compile().memory_analysis()
        want = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes + memory.temp_size_in_bytes
        graph, plan = os.path.join(tmp, "step.mlir"), os.path.join(tmp, "plan.jax")
        with open(graph, "w") as f:
            f.write(lowered.as_text(debug_info=True))
        with open(plan, "w") as f:
            json.dump({"format": "placer jax 1", "device": {"": 0}}, f)
        doc = json.loads(placer("simulate", "--graph", graph, "--gpu", "a100", "--gpus", 1, "--plan", plan, "--scheduler", "critical-path", "--json"))
        got = doc["devices"][0]["peak_bytes"]
        # XLA for CPUs copies weights of layers where it turns them; the simulator has gradients wait for their updates.
        assert 0.9 < got / want < 1.3, (name, got, want)
        print(f"jax: {name} peaks at {got / 1e6:.1f} MB, XLA allocates {want / 1e6:.1f} MB")


if __name__ == "__main__":
    for test in (test_map, test_memory, test_costs):
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp)
