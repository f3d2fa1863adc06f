"""The forms that `placer export --to` writes, loaded by the programs they are for.

Run by `make test-doors`: python test_doors.py PLACER [tensorflow|torch|onnx ...]
A program that is not installed fails the test of its form.
"""

import json
import os
import subprocess
import sys
import tempfile

PLACER = os.path.abspath(sys.argv[1])
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "float32",
}


def placer(*args):
    done = subprocess.run([PLACER, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"placer {' '.join(map(str, args))}: {done.stderr}")
    return done.stdout, done.stderr


def search(graph, folder, *more):
    placer("search", "--graph", graph, "--gpu", "a100", "--gpus", 2, "--evaluations", 200, "--out", folder, *more)
    return os.path.join(folder, "plan.json")


def decoder(torch):
    """A decoder of CONFIG's modules, without attention: names are what is tested."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self, d, f):
            super().__init__()
            self.input_layernorm = nn.LayerNorm(d)
            self.self_attn = nn.ModuleDict({k: nn.Linear(d, d, bias=False) for k in ("q_proj", "k_proj", "v_proj", "o_proj")})
            self.mlp = nn.ModuleDict({"gate_proj": nn.Linear(d, f, bias=False), "up_proj": nn.Linear(d, f, bias=False), "down_proj": nn.Linear(f, d, bias=False)})

        def forward(self, x):
            y = self.input_layernorm(x)
            a = self.self_attn
            x = x + a["o_proj"](torch.tanh(a["q_proj"](y)) * a["k_proj"](y) + a["v_proj"](y))
            m = self.mlp
            return x + m["down_proj"](torch.relu(m["gate_proj"](x)) * m["up_proj"](x))

    class Inner(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
            self.layers = nn.ModuleList(Layer(c["hidden_size"], c["intermediate_size"]) for _ in range(c["num_hidden_layers"]))
            self.norm = nn.LayerNorm(c["hidden_size"])

        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)

    class Model(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.model = Inner(c)
            self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

        def forward(self, ids):
            return self.lm_head(self.model(ids))

    torch.manual_seed(1)
    return Model(CONFIG).eval()


def exported(tmp, target):
    graph = os.path.join(tmp, "config.json")
    if not os.path.exists(graph):
        with open(graph, "w") as f:
            json.dump(CONFIG, f)
        search(graph, os.path.join(tmp, "run"), "--dim", "seq=32", "--objective", "throughput")
    out = os.path.join(tmp, "out." + target)
    _, err = placer("export", "--graph", graph, "--dim", "seq=32", "--gpu", "a100", "--gpus", 2, "--plan", os.path.join(tmp, "run", "plan.json"), "--to", target, "--objective", "throughput", "-o", out)
    print(err.strip().splitlines()[-1])
    placer("simulate", "--graph", graph, "--dim", "seq=32", "--gpu", "a100", "--gpus", 2, "--plan", out)
    with open(out) as f:
        return f.read()


def dispatched(tmp, model, device_map, *inputs):
    """What model computes before and after accelerate has dispatched it by the map."""
    import torch
    from accelerate import dispatch_model
    from accelerate.utils import check_device_map

    check_device_map(model, device_map)
    with torch.no_grad():
        want = model(*inputs)
    # Without GPUs: the first device is the CPU, the second the disk.
    here = {path: "cpu" if d == 0 else "disk" for path, d in device_map.items()}
    assert set(here.values()) == {"cpu", "disk"}, here
    dispatch_model(model, here, offload_dir=os.path.join(tmp, "offload"), force_hooks=True)
    with torch.no_grad():
        got = model(*inputs)
    assert torch.equal(want, got)
    print(f"accelerate: {len(device_map)} entries on {len(set(device_map.values()))} devices, equal outputs")


def test_accelerate(tmp):
    import torch

    device_map = json.loads(exported(tmp, "accelerate"))
    dispatched(tmp, decoder(torch), device_map, torch.arange(32).reshape(1, 32) % 256)


def test_accelerate_parameters(tmp):
    """Modules that hold parameters beside other modules, on two devices."""
    import torch

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from placer_torch import graph
    from placer_torch.capture import capture

    nn = torch.nn

    class Embeddings(nn.Module):
        def __init__(self):
            super().__init__()
            self.cls_token = nn.Parameter(torch.ones(1, 1, 32))
            self.position = nn.Parameter(torch.linspace(0, 1, 9 * 32).reshape(1, 9, 32))
            self.projection, self.norm = nn.Linear(48, 32), nn.LayerNorm(32)

        def forward(self, x):
            x = self.projection(x)
            x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), 1) + self.position
            return self.norm(x)

    class Vision(nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = Embeddings()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(3))
            self.head = nn.Linear(32, 10)
            self.scale = nn.Parameter(torch.full((), 2.0))

        def forward(self, x):
            x = self.embeddings(x)
            for block in self.blocks:
                x = x + block(x)
            return self.head(x[:, 0]) * self.scale

    torch.manual_seed(1)
    model, x = Vision().eval(), torch.randn(2, 8, 48)
    path = os.path.join(tmp, "vision.json")
    graph.write(capture(model, None, (x,), name="vision"), path)
    plan = search(path, os.path.join(tmp, "vision"))
    # The best plan of so small a step is one device: cut within the embeddings.
    with open(path) as f:
        ops = json.load(f)["ops"]
    with open(plan) as f:
        document = json.load(f)
    first = ("embeddings.projection", "embeddings.cls_token", "embeddings.position")
    at, group = {}, {}
    for o in ops:
        inside = o.get("module", "") == "embeddings" or o.get("module", "").startswith(first) or o["name"].startswith(first) or o["kind"] == "Placeholder"
        at[o["name"]] = group.setdefault(o.get("group") or o["name"], int(not inside))
    document["device"] = [at[o["name"]] for o in ops]
    for key in ("priority", "fusion", "ops"):
        document.pop(key, None)
    with open(plan, "w") as f:
        json.dump(document, f)
    out = os.path.join(tmp, "vision.map")
    machine = ("--graph", path, "--gpu", "a100", "--gpus", 2)
    placer("export", *machine, "--plan", plan, "--to", "accelerate", "-o", out)
    placer("simulate", *machine, "--plan", out)
    with open(out) as f:
        device_map = json.load(f)
    assert device_map["embeddings.cls_token"] == 0 and device_map["embeddings.norm"] == 1 and device_map["scale"] == 1, device_map
    dispatched(tmp, model, device_map, x)


def test_pipelining(tmp):
    import torch
    from torch.distributed.pipelining import SplitPoint, pipeline

    spec = json.loads(exported(tmp, "torch-pipelining"))
    model = decoder(torch)
    ids = torch.arange(32).reshape(1, 32) % 256
    pipe = pipeline(model, mb_args=(ids,), split_spec={k: SplitPoint[v] for k, v in spec["split_spec"].items()})
    assert pipe.num_stages == spec["stages"], (pipe.num_stages, spec)
    with torch.no_grad():
        want, x = model(ids), (ids,)
        for k in range(pipe.num_stages):
            out = pipe.get_stage_module(k)(*x)
            x = out if isinstance(out, tuple) else (out,)
    assert torch.equal(want, x[0])
    print(f"torch-pipelining: {pipe.num_stages} stages, equal outputs")


def test_tensorflow(tmp):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [8, 32], "x")
        y = x
        for i in range(4):
            with v1.variable_scope(f"layer{i}"):
                w = v1.get_variable("w", [32, 32], initializer=v1.constant_initializer(np.linspace(-0.3, 0.3, 1024).reshape(32, 32)), use_resource=True)
                y = tf.tanh(tf.matmul(y, w) + y)
        loss = tf.reduce_mean(tf.square(y), name="loss")
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        both = tf.group(loss, train, name="step")
        init = v1.global_variables_initializer()
    full = graph.as_graph_def(add_shapes=True)
    step = v1.graph_util.extract_sub_graph(full, ["step", "loss"])
    path = os.path.join(tmp, "step.pb")
    with open(path, "wb") as f:
        f.write(step.SerializeToString())
    plan = search(path, os.path.join(tmp, "tf"))
    # The best plan of so small a step is one device: take one that uses both.
    own = os.path.join(tmp, "step.json")
    placer("import", "--graph", path, "-o", own)
    with open(own) as f:
        ops = json.load(f)["ops"]
    with open(plan) as f:
        document = json.load(f)
    group = {}
    document["device"] = [group.setdefault(o.get("group") or o["name"], int("layer2" in o["name"] or "layer3" in o["name"])) for o in ops]
    document.pop("priority", None)
    document.pop("fusion", None)
    document.pop("ops", None)  # the same by name
    with open(plan, "w") as f:
        json.dump(document, f)
    out = os.path.join(tmp, "placed.pb")
    placer("export", "--graph", path, "--gpu", "a100", "--gpus", 2, "--plan", plan, "--to", "graphdef", "-o", out)
    placer("simulate", "--graph", path, "--gpu", "a100", "--gpus", 2, "--plan", out)
    placed = v1.GraphDef()
    with open(out, "rb") as f:
        placed.ParseFromString(f.read())
    used = set()
    for n in placed.node:
        n.device = n.device.replace("GPU", "CPU")  # two logical CPU devices stand for the GPUs
        used.add(n.device)

    def losses(step_def):
        # Variables are initialised by a graph of their own, which the chains of the step
        # do not lead through: handles of one name on one device are one variable.
        device = {n.name: n.device for n in step_def.node}
        start = v1.graph_util.extract_sub_graph(full, [init.name])
        for n in start.node:
            n.device = device.get(n.name) or next((device[i] for i in n.input if i in device), "")
        g = tf.Graph()
        with g.as_default():
            tf.import_graph_def(step_def, name="")
            tf.import_graph_def(start, name="start")
            config = v1.ConfigProto(device_count={"CPU": 2}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=2, use_per_session_threads=True)
            config.graph_options.optimizer_options.opt_level = -1
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            with v1.Session(config=config) as s:
                s.run("start/" + init.name)
                feed = {"x:0": np.linspace(-1, 1, 256).reshape(8, 32)}
                return [float(s.run(["loss:0", "step"], feed)[0]) for _ in range(5)]

    assert len(used) == 2, used
    want, got = losses(step), losses(placed)
    assert want == got, (want, got)
    print(f"graphdef: {len(placed.node)} nodes on {sorted(used)}, 5 losses equal: {got[0]:.6f} to {got[-1]:.6f}")


def test_onnx(tmp):
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(1)
    nodes, weights, x = [], [], "x"
    for i in range(12):
        weights.append(numpy_helper.from_array((rng.standard_normal((256, 256)) / 16).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], f"matmul{i}"))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"t{i}"], f"tanh{i}"))
        x = f"t{i}"
    nodes.append(helper.make_node("Add", [x, "t3"], ["y"], "add"))  # passes over the cut
    shape = ["batch", 256]
    model = helper.make_model(
        helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path = os.path.join(tmp, "mlp.onnx")
    onnx.save(model, path)
    plan = search(path, os.path.join(tmp, "run"), "--dim", "batch=64", "--objective", "throughput")
    out = os.path.join(tmp, "stages.json")
    _, err = placer("export", "--graph", path, "--dim", "batch=64", "--gpu", "a100", "--gpus", 2, "--plan", plan, "--to", "onnx", "--objective", "throughput", "-o", out)
    print(err.strip().splitlines()[-1])
    placer("simulate", "--graph", path, "--dim", "batch=64", "--gpu", "a100", "--gpus", 2, "--plan", out)
    with open(out) as f:
        stages = json.load(f)["stages"]
    assert len(stages) == 2, stages
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    known = {"x": rng.standard_normal((64, 256)).astype(np.float32)}
    want = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(["y"], known)[0]
    for s in stages:
        file = os.path.join(tmp, s["file"])
        onnx.checker.check_model(onnx.load(file), full_check=True)
        session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        known.update(zip(s["outputs"], session.run(s["outputs"], {k: known[k] for k in s["inputs"]})))
    assert np.array_equal(want, known["y"])
    print(f"onnx: {len(stages)} stages of {[len(s['nodes']) for s in stages]} nodes, equal outputs")


def test_onnx_devices(tmp):
    """The whole model with device configurations and layer annotations: onnx's checker takes it, ONNX Runtime gives the same outputs."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    w = numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x" if k == 0 else f"t{k - 1}", "w"], [f"t{k}" if k < 7 else "y"], f"matmul{k}") for k in range(8)]
    shape = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64]), helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 64])
    path, out = os.path.join(tmp, "chain.onnx"), os.path.join(tmp, "placed.onnx")
    onnx.save(helper.make_model(helper.make_graph(nodes, "chain", [shape[0]], [shape[1]], [w]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    plan = search(path, os.path.join(tmp, "run"), "--objective", "throughput", "--methods", "single,contiguous")
    placer("export", "--graph", path, "--gpu", "a100", "--gpus", 2, "--plan", plan, "--to", "onnx-devices", "-o", out)
    placed = onnx.load(out)
    onnx.checker.check_model(placed, full_check=True)
    assert placed.ir_version == 11 and list(placed.configuration[0].device) == ["gpu:0", "gpu:1"]
    with open(plan) as f:
        devices = [d for d in json.load(f)["device"]]
    stages = [n.device_configurations[0].pipeline_stage for n in placed.graph.node]
    assert [p.value for n in placed.graph.node for p in n.metadata_props if p.key == "layer_ann"] == [f"gpu:{k}" for k in stages]
    assert set(stages) == set(devices), (stages, devices)
    x = {"x": np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)}
    one, two = (ort.InferenceSession(p, providers=["CPUExecutionProvider"]).run(None, x)[0] for p in (path, out))
    assert np.array_equal(one, two)
    print(f"onnx-devices: {len(stages)} nodes on {len(set(stages))} devices, equal outputs")


TESTS = {"onnx": [test_onnx, test_onnx_devices], "torch": [test_accelerate, test_accelerate_parameters, test_pipelining], "tensorflow": [test_tensorflow]}

if __name__ == "__main__":
    for name in sys.argv[2:] or list(TESTS):
        for test in TESTS[name]:
            with tempfile.TemporaryDirectory() as tmp:
                test(tmp)
