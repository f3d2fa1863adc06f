"""Decoders of transformers trained by pipelines of two processes over gloo, beside plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as T

import still
from pipelines import plain, run, strategy

pytestmark = pytest.mark.forks

SIZES = dict(vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, pad_token_id=0)


def made(config: Any) -> Any:
    torch.manual_seed(0)
    config = still.config(config)
    config.use_cache = False
    model = still.model(T.AutoModelForCausalLM.from_config(config))
    ids = torch.randint(1, 50, (16, 8))
    batch = {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}
    return model, lambda m, b: m(**b).loss, batch, torch.optim.SGD(model.parameters(), lr=0.1)


GPT2 = lambda: made(T.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=4, n_positions=8))  # noqa: E731
LLAMA = lambda: made(T.LlamaConfig(**SIZES))  # noqa: E731
TIED = lambda: made(T.Qwen3Config(**SIZES, head_dim=4, tie_word_embeddings=True))  # noqa: E731
MIXTURE = lambda: made(T.Qwen3MoeConfig(**SIZES, head_dim=4, moe_intermediate_size=8, num_experts=4, num_experts_per_tok=2))  # noqa: E731

LLAMAS = [["model.embed_tokens", "model.rotary_emb", "model.layers.0"], ["model.layers.1", "model.norm", "lm_head"]]
GPT2S = [["transformer.wte", "transformer.wpe", "transformer.h.0"], ["transformer.h.1", "transformer.ln_f", "lm_head"]]
PRODUCTS = {"columns": [f"model.layers.{k}.{m}" for k in (0, 1) for m in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")], "rows": [f"model.layers.{k}.{m}" for k in (0, 1) for m in ("self_attn.o_proj", "mlp.down_proj")]}
CASES = {
    "gpt2, whose head is its table": (GPT2, strategy("1f1b", GPT2S)),
    "llama": (LLAMA, strategy("gpipe", LLAMAS, recompute="layers", layers=[["model.layers.0"], ["model.layers.1"]])),
    "qwen3, tied, interleaved": (TIED, strategy("interleaved", [LLAMAS[0][:2], LLAMAS[0][2:], LLAMAS[1][:1], LLAMAS[1][1:]], ranks=2)),
    "a mixture, whose experts are an op of the library, whole beside split products": (MIXTURE, strategy("gpipe", LLAMAS, tensor=2, columns=[x for x in PRODUCTS["columns"] if "mlp" not in x], rows=[x for x in PRODUCTS["rows"] if "mlp" not in x])),
    "a mixture whose experts two replicas share out": (MIXTURE, strategy("1f1b", LLAMAS, data=2, sharding="zero-1", layers=[["model.layers.0"], ["model.layers.1"]], expert_ranks=2, experts=["model.layers.0.mlp.experts", "model.layers.1.mlp.experts"])),
    "llama, split products": (LLAMA, strategy("1f1b", LLAMAS, tensor=2, **PRODUCTS)),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_are_plain_torch(name: str) -> None:
    make, s = CASES[name]
    got, want = run(make, s), plain(make, s)
    assert got.losses == pytest.approx(want.losses, abs=1e-5)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=1e-5, rtol=0)
