"""Decoders of transformers trained by strategies in processes over gloo, beside plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as T

import still
import strategies
from strategies import SAMPLES, TIME, VOCABULARY, Kind, strategy

pytestmark = pytest.mark.forks

SIZES = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4, pad_token_id=0)


def made(config: Any) -> Any:
    torch.manual_seed(0)
    config = still.config(config)
    config.use_cache = False
    model = still.model(T.AutoModelForCausalLM.from_config(config)).double()
    ids = torch.randint(0, VOCABULARY, (SAMPLES, TIME))
    return model, lambda m, batch: m(**batch).loss, {"input_ids": ids, "labels": ids}, torch.optim.AdamW(model.parameters(), lr=0.01)


DECODERS = {
    "llama": lambda: made(T.LlamaConfig(**SIZES)),
    "gemma, which scales its table": lambda: made(T.GemmaConfig(**SIZES)),
    "qwen3, tied": lambda: made(T.Qwen3Config(**SIZES, tie_word_embeddings=True)),
}
PROJECTIONS = Kind(DECODERS["llama"], "model.layers", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"), ("self_attn.o_proj", "mlp.down_proj"), "model.embed_tokens")
GPT2 = Kind(lambda: made(T.GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_positions=TIME)), "transformer.h", ("attn.c_attn", "mlp.c_fc"), ("attn.c_proj", "mlp.c_proj"), "transformer.wte")
REPLICAS: list[dict[str, Any]] = [{"data": 2, "sharding": "ddp"}, {"data": 2, "sharding": "zero-1", "mb": 2}, {"data": 2, "sharding": "zero-3", "mb": 2, "recompute": True}]
PARTS: list[dict[str, Any]] = [{"tensor": 2, "mb": 2, "recompute": True}, {"tensor": 2, "vocabulary": True}, {"tensor": 2, "vocabulary": True, "sequence": True}]


@pytest.mark.parametrize("name", DECODERS)
def test_projections(name: str) -> None:
    held(DECODERS[name], PROJECTIONS, REPLICAS + PARTS)


def test_gpt2() -> None:
    """Its products are Conv1D's, and queries, keys and values are one."""
    products = {f"{GPT2.layers}.{k}.{x}": x for k in strategies.LAYERS for x in (*GPT2.columns, *GPT2.rows)}
    held(GPT2.make, GPT2, REPLICAS)
    held(GPT2.make, GPT2, PARTS, transposed=list(products), parts={path: [16] * 3 for path, x in products.items() if x == "attn.c_attn"})


TOKENS: list[dict[str, Any]] = [{"data": 2, "context": 2, "sharding": "ddp"}, {"data": 2, "context": 2, "sharding": "zero-3", "mb": 2, "recompute": True}]


@pytest.mark.parametrize("name", DECODERS)
def test_tokens(name: str) -> None:
    """Positions, masks and shifted labels are transformers' own."""
    held(DECODERS[name], PROJECTIONS, TOKENS)


def test_tokens_of_gpt2() -> None:
    held(GPT2.make, GPT2, TOKENS)


def test_tokens_in_windows() -> None:
    held(lambda: made(T.MistralConfig(**SIZES, sliding_window=3)), PROJECTIONS, TOKENS)


def bert() -> Any:
    config = still.config(T.BertConfig(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=TIME))
    torch.manual_seed(0)
    model = still.model(T.BertForMaskedLM(config)).double()
    ids = torch.randint(0, VOCABULARY, (SAMPLES, TIME))
    return model, lambda m, batch: m(**batch).loss, {"input_ids": ids, "labels": ids}, torch.optim.AdamW(model.parameters(), lr=0.01)


def test_bert() -> None:
    """The head's bias is its product's too, and its weight the table."""
    inner = ("attention.self.query", "attention.self.key", "attention.self.value", "intermediate.dense")
    kind = Kind(bert, "bert.encoder.layer", inner, ("attention.output.dense", "output.dense"), "bert.embeddings.word_embeddings")
    held(bert, kind, PARTS[:1])
    held(bert, kind, PARTS[1:], vocabulary_columns=["cls.predictions.decoder"])


def t5() -> Any:
    config = still.config(T.T5Config(vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=0))
    torch.manual_seed(0)
    model = still.model(T.T5ForConditionalGeneration(config)).double()
    ids = torch.randint(1, VOCABULARY, (SAMPLES, TIME))
    return model, lambda m, batch: m(**batch).loss, {"input_ids": ids, "labels": ids}, torch.optim.AdamW(model.parameters(), lr=0.01)


def test_t5() -> None:
    """Encoder and decoder look up in one table, which a third module holds and the head has too."""
    feed = [f"{side}.block.{k}.layer.{n}.DenseReluDense" for side, n in (("encoder", 1), ("decoder", 2)) for k in strategies.LAYERS]
    tables = ["encoder.embed_tokens", "decoder.embed_tokens"]
    doc = {"format": "placer strategy 1", "strategy": "tp=2 vocab", "batch": SAMPLES, "data": 1, "sharding": "ddp", "tensor": 2, "vocabulary": True, "vocabulary_columns": ["lm_head"], "vocabulary_rows": tables}
    (got,) = strategies.run(t5, [doc | {"columns": [f"{x}.wi" for x in feed], "rows": [f"{x}.wo" for x in feed]}])
    assert got.loss < 1e-10 and got.state < 1e-8


def held(make: Any, kind: Kind, of: list[dict[str, Any]], **more: Any) -> None:
    docs = [strategy(kind, **x, **more) for x in of]
    for doc, got in zip(docs, strategies.run(make, docs), strict=True):
        assert got.loss < 1e-5 and got.state < 1e-5, (doc["strategy"], got)


def mixture(config: Any, how: str = "batched_mm") -> Any:
    """how: transformers' products of groups of rows are of float32 and below alone."""
    model, loss, batch, _ = made(config)
    model.config._experts_implementation = how
    return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01)


CHOICE: dict[str, Any] = dict(num_experts_per_tok=2)
LATENT: dict[str, Any] = dict(kv_lora_rank=8, q_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8, n_group=2, topk_group=1, first_k_dense_replace=1, moe_intermediate_size=8)
MIXTURES = {
    "mixtral": lambda: mixture(T.MixtralConfig(**SIZES, **CHOICE, num_local_experts=4)),
    "qwen3, in a loop": lambda: mixture(T.Qwen3MoeConfig(**SIZES, **CHOICE, num_experts=4, moe_intermediate_size=8), "eager"),
    "gpt-oss, with biases": lambda: mixture(T.GptOssConfig(**SIZES, **CHOICE, num_local_experts=4, attn_implementation="eager")),
    "deepseek, with a shared expert": lambda: mixture(T.DeepseekV3Config(**{**SIZES, "num_key_value_heads": 4}, **CHOICE, **LATENT, n_routed_experts=4)),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_experts(name: str) -> None:
    """Shared out among two of four replicas, as many transformers' mixtures have them."""
    layers = [f"model.layers.{k}" for k in strategies.LAYERS]
    first = 1 if name.startswith("deepseek") else 0  # whose first layer is dense
    of = dict(expert_ranks=2, experts=[f"{x}.mlp.experts" for x in layers[first:]])
    held(MIXTURES[name], PROJECTIONS, [{"data": 4, "sharding": "zero-3", "mb": 2, "recompute": True}, {"data": 4, "sharding": "ddp"}], **of)
