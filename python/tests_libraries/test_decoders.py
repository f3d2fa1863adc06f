"""config.json of decoders: what placer makes of them beside what transformers builds.

Published sizes are built on the meta device: parameters by name and number. Small models run on
the CPU: floating-point operations of products and of attention, and what is kept of keys and
values.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as T
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.mistral4.modeling_mistral4 import Mistral4ForCausalLM

PLACER = os.environ.get("PLACER", "placer")

# Sizes that the authors of the models publish in their config.json.
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama-3.1-8B": ("llama", dict(vocab_size=128256, intermediate_size=14336, num_key_value_heads=8)),
    "Llama-3.2-1B": ("llama", dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True)),
    "Mistral-7B-v0.3": ("mistral", dict(vocab_size=32768, sliding_window=None)),
    "Ministral 3, sizes of the class": ("ministral3", {}),
    "Mixtral-8x7B": ("mixtral", dict(rms_norm_eps=1e-5)),
    "Qwen2.5-7B": ("qwen2", dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4)),
    "Qwen1.5-MoE-A2.7B": ("qwen2_moe", {}),
    "Qwen3-8B": ("qwen3", dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_key_value_heads=8)),
    "Qwen3-30B-A3B": ("qwen3_moe", dict(num_hidden_layers=48, head_dim=128, norm_topk_prob=True)),
    "gemma-7b": ("gemma", {}),
    "gemma-2-9b": ("gemma2", dict(hidden_size=3584, intermediate_size=14336, num_hidden_layers=42, num_attention_heads=16, num_key_value_heads=8)),
    "gemma-3-4b, text": ("gemma3_text", dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34, sliding_window=1024)),
    "phi-2": ("phi", dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=32)),
    "Phi-3-mini-4k": ("phi3", dict(sliding_window=2047)),
    "Phi-3.5-MoE": ("phimoe", dict(attention_bias=True, lm_head_bias=True)),
    "OLMo-7B": ("olmo", {}),
    "OLMo-2-7B": ("olmo2", dict(vocab_size=100352)),
    "Olmo-3-7B": ("olmo3", dict(vocab_size=100278)),
    "OLMoE-1B-7B": ("olmoe", dict(intermediate_size=1024)),
    "DeepSeek-V2-Lite": ("deepseek_v2", dict(hidden_size=2048, intermediate_size=10944, moe_intermediate_size=1408, num_hidden_layers=27, num_attention_heads=16, num_key_value_heads=16, q_lora_rank=None, num_experts_per_tok=6, first_k_dense_replace=1)),
    "DeepSeek-V3": ("deepseek_v3", {}),
    "glm-4-9b-hf": ("glm", {}),
    "GLM-4-9B-0414": ("glm4", {}),
    "GLM-4.5-Air": ("glm4_moe", dict(head_dim=128, attention_bias=True)),
    "gpt-oss-20b": ("gpt_oss", dict(num_hidden_layers=24, num_local_experts=32)),
    "granite-3.1-8b": ("granite", dict(vocab_size=49155, intermediate_size=12800, num_hidden_layers=40, num_key_value_heads=8, tie_word_embeddings=True, embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=16.0, attention_multiplier=0.0078125)),
    "granite-3.1-3b-a800m": ("granitemoe", dict(vocab_size=49155, hidden_size=1536, intermediate_size=512, num_attention_heads=24, num_key_value_heads=8, num_local_experts=40, num_experts_per_tok=8, tie_word_embeddings=True)),
    "SmolLM3-3B": ("smollm3", {}),
    "stablelm-2-1_6b": ("stablelm", dict(vocab_size=100352, hidden_size=2048, intermediate_size=5632, num_hidden_layers=24, use_qkv_bias=True)),
    "c4ai-command-r-v01": ("cohere", {}),
    "c4ai-command-r-plus": ("cohere", dict(hidden_size=12288, intermediate_size=33792, num_hidden_layers=64, num_attention_heads=96, num_key_value_heads=8, use_qk_norm=True)),
    "c4ai-command-r7b": ("cohere2", dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)),
    "starcoder2-7b": ("starcoder2", dict(hidden_size=4608, intermediate_size=18432, num_hidden_layers=32, num_attention_heads=36, num_key_value_heads=4, sliding_window=4096)),
    "gpt-neox-20b": ("gpt_neox", {}),
    "gpt2": ("gpt2", {}),
    "starcoder": ("gpt_bigcode", dict(vocab_size=49152, n_positions=8192, n_embd=6144, n_layer=40, n_head=48, n_inner=24576)),
    "gpt-j-6b": ("gptj", {}),
    "falcon-7b": ("falcon", {}),
    "falcon-40b": ("falcon", dict(hidden_size=8192, num_hidden_layers=60, num_attention_heads=128, num_kv_heads=8, new_decoder_architecture=True)),
    "falcon-rw-1b": ("falcon", dict(vocab_size=50304, hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, alibi=True, multi_query=False, parallel_attn=False, bias=True)),
    "opt-1.3b": ("opt", dict(hidden_size=2048, num_hidden_layers=24, ffn_dim=8192, num_attention_heads=32, word_embed_proj_dim=2048)),
    "bloom-7b1": ("bloom", dict(hidden_size=4096, n_layer=30, n_head=32)),
    "Seed-OSS-36B": ("seed_oss", dict(hidden_size=5120)),
    "ERNIE-4.5-0.3B": ("ernie4_5", {}),
    "EXAONE-4.0-32B": ("exaone4", dict(hidden_size=5120, intermediate_size=27392, num_hidden_layers=64, num_attention_heads=40, num_key_value_heads=8)),
    "helium-1-2b": ("helium", dict(num_attention_heads=20)),
    "MiniMax-M2": ("minimax_m2", {}),
    "Llama-4-Scout, text": ("llama4_text", {}),
    "Llama-4-Maverick, text": ("llama4_text", dict(num_local_experts=128, interleave_moe_layer_step=2, use_qk_norm=False)),
    "Qwen2-VL-2B": ("qwen2_vl", dict(text_config=dict(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2), tie_word_embeddings=True)),
    "Qwen2.5-VL-7B": ("qwen2_5_vl", dict(text_config=dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4))),
    "Qwen3-VL-8B": ("qwen3_vl", dict(text_config=dict(intermediate_size=12288, num_hidden_layers=36, num_key_value_heads=8))),
    "Qwen3-VL-30B-A3B": ("qwen3_vl_moe", dict(text_config=dict(intermediate_size=6144, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128))),
    "GLM-4.1V-9B": ("glm4v", {}),
    "GLM-4.5V": ("glm4v_moe", dict(text_config=dict(head_dim=128))),
    "DeepSeek-V3.2": ("deepseek_v32", {}),
    "GLM-5, sizes of the class": ("glm_moe_dsa", {}),
    "GLM-4.7-Flash": ("glm4_moe_lite", {}),
    "dots.llm1": ("dots1", dict(vocab_size=152064, hidden_size=4096, num_attention_heads=32, num_hidden_layers=62, n_routed_experts=128, num_experts_per_tok=6, n_shared_experts=2, first_k_dense_replace=1)),
    "K-EXAONE-236B": ("exaone_moe", dict(vocab_size=153600, hidden_size=6144, intermediate_size=18432, num_hidden_layers=48, num_attention_heads=64, num_key_value_heads=8, head_dim=128, moe_intermediate_size=2048, num_experts=128)),
    "FlexOlmo-7x7B": ("flex_olmo", {}),
    "Solar-Open-100B": ("solar_open", {}),
    "Hy3, sizes of the class": ("hy_v3", {}),
    "Mellum2-12B": ("mellum", {}),
    "Mistral 4, sizes of the class": ("mistral4", {}),
    "sarvam-30b": ("sarvam_moe", {}),
    "sarvam-105b": ("sarvam_mla", {}),
    "AFM-4.5B": ("arcee", dict(vocab_size=128003, num_hidden_layers=36, num_attention_heads=20, num_key_value_heads=4, head_dim=128)),
    "cwm": ("cwm", {}),
    "Granite with windows, sizes of the class": ("granite_swa", {}),
    "Hunyuan-7B": ("hunyuan_v1_dense", dict(vocab_size=128167, hidden_size=4096, intermediate_size=14336, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True)),
    "internlm3-8b": ("internlm3", {}),
    "IQuest-Coder-V1-40B": ("iquestcoder", {}),
    "Jais-2, sizes of the class": ("jais2", {}),
    "MiniCPM3-4B": ("minicpm3", {}),
    "Ministral-8B": ("ministral", dict(vocab_size=131072, intermediate_size=12288, num_hidden_layers=36, head_dim=128, sliding_window=32768)),
    "Minitron-4B": ("nemotron", dict(hidden_size=3072, intermediate_size=9216, num_attention_heads=24, num_key_value_heads=8, head_dim=128)),
    "vaultgemma-1b": ("vaultgemma", dict(hidden_size=1152, intermediate_size=6912, num_attention_heads=4, num_key_value_heads=4)),
    "Youtu-LLM-2B": ("youtu", {}),
    "Qwen3-Next-80B-A3B": ("qwen3_next", {}),
    "Qwen3.5-9B": ("qwen3_5", {}),
    "Qwen3.5-35B-A3B": ("qwen3_5_moe", {}),
    "granite-4.0-h-small": ("granitemoehybrid", dict(vocab_size=100352, intermediate_size=768, shared_intermediate_size=1536, num_hidden_layers=40, num_key_value_heads=8, num_local_experts=72, num_experts_per_tok=10, mamba_d_state=128, tie_word_embeddings=True, layer_types=["full_attention" if i % 10 == 5 else "linear_attention" for i in range(40)])),
    "Nemotron-Nano-9B-v2": ("nemotron_h", dict(hidden_size=4480, intermediate_size=15680, num_attention_heads=40, mamba_head_dim=80, hybrid_override_pattern="M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-")),
    "Nemotron-3-Nano-30B-A3B": ("nemotron_h", dict(hidden_size=2688, num_key_value_heads=2, mamba_num_heads=64, n_routed_experts=128, num_experts_per_tok=6, moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME")),
    "Bamba-9B": ("bamba", dict(vocab_size=128256, mamba_d_state=128, attn_layer_indices=[9, 18, 27])),
    "Mamba-Codestral-7B": ("mamba2", {}),
    "ERNIE-4.5-21B-A3B": ("ernie4_5_moe", {}),
    "Gemma 4 E2B, text": ("gemma4_text", dict(hidden_size=1536, intermediate_size=6144, num_hidden_layers=35, num_key_value_heads=1, num_kv_shared_layers=20, use_double_wide_mlp=True, layer_types=(["sliding_attention"] * 4 + ["full_attention"]) * 7)),
    "Gemma 4 31B, text": ("gemma4_text", dict(hidden_size=5376, intermediate_size=21504, num_hidden_layers=60, num_attention_heads=32, num_key_value_heads=16, num_global_key_value_heads=4, attention_k_eq_v=True, hidden_size_per_layer_input=0, sliding_window=1024)),
    "Gemma 4 26B-A4B, text": ("gemma4_text", dict(hidden_size=2816, intermediate_size=2112, num_hidden_layers=30, num_attention_heads=16, num_key_value_heads=8, num_global_key_value_heads=2, attention_k_eq_v=True, hidden_size_per_layer_input=0, sliding_window=1024, enable_moe_block=True, num_experts=128, top_k_experts=8, moe_intermediate_size=704)),
}  # fmt: skip


def described(tmp: Path, config: Any, **dims: int) -> dict[str, Any]:
    """The graph that placer makes of config as transformers saves it, without what is as its class has it."""
    at = tmp / "config.json"
    config.to_json_file(at)
    assert json.loads(at.read_text())["model_type"] == config.model_type
    return read(at, **dims)


def read(at: Path, **dims: int) -> dict[str, Any]:
    out = at.with_name("graph.json")
    subprocess.run([PLACER, "import", "--quiet", "--graph", str(at), "--as", "json", "-o", str(out), *(f"--dim={k}={v}" for k, v in dims.items())], check=True, capture_output=True)
    return json.loads(out.read_text())


class Mistral4:
    """Which no class chooses: it is Mistral 3's text decoder."""

    @staticmethod
    def from_config(config: Any, **options: Any) -> Any:
        return Mistral4ForCausalLM._from_config(config, **options)


def auto(config: Any) -> Any:
    """The class that makes the model: of several parts, where a text decoder alone has none."""
    if hasattr(config, "vision_config"):
        return T.AutoModelForImageTextToText
    return T.AutoModelForCausalLM if type(config) in T.AutoModelForCausalLM._model_mapping else Mistral4


def built(config: Any) -> Any:
    with torch.device("meta"):
        return auto(config).from_config(config)


def of_decoder(model: Any) -> dict[str, int]:
    """The elements of each parameter but those of what sees."""
    return {k: p.numel() for k, p in model.named_parameters() if not k.startswith("model.visual.")}


def parameters(graph: dict[str, Any]) -> dict[str, int]:
    """The elements of each parameter, by the path of its module and its name."""
    return {f"{op['module']}.{op['name'].rsplit('/', 1)[1]}": op["params"] for op in graph["ops"] if op.get("params")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters(name: str, tmp_path: Path) -> None:
    kind, sizes = PUBLISHED[name]
    config = T.AutoConfig.for_model(kind, dtype="bfloat16", **sizes)
    graph = described(tmp_path, config, seq=1)
    want = of_decoder(built(config))
    assert parameters(graph) == want
    assert sum(op.get("resident", 0) for op in graph["ops"] if op.get("params")) == 2 * sum(want.values())


def test_text_of_several_parts(tmp_path: Path) -> None:
    """Gemma 3's file has its decoder's sizes in text_config, and leaves out those of the class."""
    text = dict(model_type="gemma3_text", hidden_size=2560, intermediate_size=10240, num_hidden_layers=34, sliding_window=1024)
    (tmp_path / "config.json").write_text(json.dumps(dict(model_type="gemma3", torch_dtype="bfloat16", text_config=text, vision_config=dict(model_type="siglip_vision_model"))))
    want = built(T.AutoConfig.for_model(**text))
    assert parameters(read(tmp_path / "config.json", seq=1)) == {k: p.numel() for k, p in want.named_parameters()}


KIMI_K2 = dict(vocab_size=163840, num_attention_heads=64, num_key_value_heads=64, n_routed_experts=384, n_group=1, topk_group=1, first_k_dense_replace=1, num_nextn_predict_layers=0)


def test_kimi_k2(tmp_path: Path) -> None:
    """A file for code of its own, which is DeepSeek-V3's."""
    (tmp_path / "config.json").write_text(json.dumps(dict(KIMI_K2, model_type="kimi_k2", torch_dtype="bfloat16")))
    assert parameters(read(tmp_path / "config.json", seq=1)) == of_decoder(built(T.AutoConfig.for_model("deepseek_v3", **KIMI_K2)))


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
def test_sizes_beside_those_of_the_parts(kind: str, tmp_path: Path) -> None:
    """Files that the authors of Qwen2-VL publish have no text_config."""
    text = dict(vocab_size=151936, hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16, num_key_value_heads=2)
    (tmp_path / "config.json").write_text(json.dumps(dict(text, model_type=kind, torch_dtype="bfloat16", tie_word_embeddings=True, vision_config={})))
    assert parameters(read(tmp_path / "config.json", seq=1)) == of_decoder(built(T.AutoConfig.for_model(kind, text_config=text, tie_word_embeddings=True)))


V, LAYERS, S, WINDOW = 96, 6, 24, 8
SMALL: dict[str, Any] = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2)
GPT: dict[str, Any] = dict(vocab_size=V, n_embd=32, n_layer=LAYERS, n_head=4, n_positions=64)
MIXED: dict[str, Any] = dict(num_experts_per_tok=2, moe_intermediate_size=24)
MLA: dict[str, Any] = dict(SMALL, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=20, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=12, n_routed_experts=8, n_group=2, topk_group=1, first_k_dense_replace=2, **MIXED)
MAMBA: dict[str, Any] = dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_chunk_size=4)
NEMOTRON: dict[str, Any] = dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=16, mamba_num_heads=8, mamba_head_dim=8, n_groups=2, ssm_state_size=16, chunk_size=4, n_routed_experts=4, moe_intermediate_size=24, moe_shared_expert_intermediate_size=40)
LINEAR: dict[str, Any] = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=4)
EYE: dict[str, Any] = dict(hidden_size=32, embed_dim=32, num_heads=2, depth=1, intermediate_size=32, out_hidden_size=32, deepstack_visual_indexes=[])
PLAIN_EYE: dict[str, Any] = dict(hidden_size=32, num_heads=2, depth=1, intermediate_size=32, out_hidden_size=32)


def turned(sizes: dict[str, Any], *sections: int) -> dict[str, Any]:
    """With columns of a head turned by time, height and width."""
    return dict(sizes, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=list(sections)))


TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", dict(SMALL, attention_bias=True, mlp_bias=True)),
    "mistral": ("mistral", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "ministral3": ("ministral3", dict(SMALL, head_dim=16)),
    "mixtral": ("mixtral", dict(SMALL, num_local_experts=4)),
    "qwen2": ("qwen2", dict(SMALL, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)),
    "qwen2_moe": ("qwen2_moe", dict(SMALL, num_experts=8, shared_expert_intermediate_size=40, mlp_only_layers=[1], **MIXED)),
    "qwen3": ("qwen3", dict(SMALL, head_dim=16)),
    "qwen3_moe": ("qwen3_moe", dict(SMALL, head_dim=16, num_experts=8, decoder_sparse_step=2, **MIXED)),
    "gemma": ("gemma", dict(SMALL, head_dim=16)),
    "gemma2": ("gemma2", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "gemma3_text": ("gemma3_text", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "phi": ("phi", SMALL),
    "phi3": ("phi3", dict(SMALL, sliding_window=WINDOW)),
    "phimoe": ("phimoe", dict(SMALL, num_local_experts=4, attention_bias=True, lm_head_bias=True)),
    "olmo": ("olmo", SMALL),
    "olmo2": ("olmo2", SMALL),
    "olmo3": ("olmo3", dict(SMALL, sliding_window=WINDOW)),
    "olmoe": ("olmoe", dict(SMALL, num_experts=8, num_experts_per_tok=2)),
    "deepseek_v2": ("deepseek_v2", dict(MLA, q_lora_rank=None, n_group=1, n_shared_experts=2)),
    "deepseek_v3": ("deepseek_v3", MLA),
    "glm": ("glm", dict(SMALL, head_dim=16)),
    "glm4": ("glm4", dict(SMALL, head_dim=16)),
    "glm4_moe": ("glm4_moe", dict(SMALL, use_qk_norm=True, n_routed_experts=8, n_group=2, topk_group=1, **MIXED)),
    "gpt_oss": ("gpt_oss", dict(SMALL, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW)),
    "granite": ("granite", dict(SMALL, residual_multiplier=0.5)),
    "granitemoe": ("granitemoe", dict(SMALL, num_local_experts=4)),
    "smollm3": ("smollm3", dict(SMALL, use_sliding_window=True, sliding_window=WINDOW)),
    "stablelm": ("stablelm", dict(SMALL, use_parallel_residual=True)),
    "cohere": ("cohere", dict(SMALL, use_qk_norm=True)),
    "cohere2": ("cohere2", dict(SMALL, sliding_window=WINDOW)),
    "starcoder2": ("starcoder2", dict(SMALL, sliding_window=WINDOW)),
    "gpt_neox": ("gpt_neox", dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4)),
    "gpt_neox, one after the other": ("gpt_neox", dict(vocab_size=V, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, use_parallel_residual=False)),
    "gpt2": ("gpt2", GPT),
    "gpt_bigcode": ("gpt_bigcode", GPT),
    "gptj": ("gptj", dict(GPT, rotary_dim=4)),
    "falcon": ("falcon", dict(vocab_size=V, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4)),
    "falcon, later": ("falcon", dict(vocab_size=V, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True)),
    "opt": ("opt", dict(vocab_size=V, hidden_size=32, num_hidden_layers=LAYERS, ffn_dim=48, num_attention_heads=4, word_embed_proj_dim=32, max_position_embeddings=64)),
    "bloom": ("bloom", dict(vocab_size=V, hidden_size=32, n_layer=LAYERS, n_head=4)),
    "seed_oss": ("seed_oss", dict(SMALL, head_dim=16)),
    "ernie4_5": ("ernie4_5", dict(SMALL, head_dim=16, use_bias=True)),
    "exaone4": ("exaone4", dict(SMALL, sliding_window=WINDOW)),
    "helium": ("helium", dict(SMALL, head_dim=8)),
    "minimax_m2": ("minimax_m2", dict(SMALL, head_dim=16, num_local_experts=4, num_experts_per_tok=2)),
    "llama4_text": ("llama4_text", dict(SMALL, head_dim=16, intermediate_size_mlp=40, num_local_experts=4, num_experts_per_tok=2, interleave_moe_layer_step=2, attention_chunk_size=WINDOW)),
    "qwen2_vl": ("qwen2_vl", dict(text_config=turned(SMALL, 2, 1, 1), vision_config=EYE)),
    "qwen2_5_vl": ("qwen2_5_vl", dict(text_config=turned(SMALL, 2, 1, 1), vision_config=PLAIN_EYE)),
    "qwen3_vl": ("qwen3_vl", dict(text_config=dict(SMALL, head_dim=16), vision_config=EYE)),
    "qwen3_vl_moe": ("qwen3_vl_moe", dict(text_config=dict(SMALL, head_dim=16, num_experts=8, **MIXED), vision_config=EYE)),
    "glm4v": ("glm4v", dict(text_config=turned(SMALL, 2, 1, 1), vision_config=PLAIN_EYE)),
    "glm4v_moe": ("glm4v_moe", dict(text_config=turned(dict(SMALL, n_routed_experts=8, **MIXED), 1, 1, 0), vision_config=PLAIN_EYE)),
    "deepseek_v32": ("deepseek_v32", dict(MLA, first_k_dense_replace=2, index_topk=64, index_head_dim=8, index_n_heads=4)),
    "glm_moe_dsa": ("glm_moe_dsa", dict(MLA, index_topk=64, index_head_dim=8, index_n_heads=4, indexer_types=["full", "shared"] * 3)),
    "glm_moe_dsa, every third": ("glm_moe_dsa", dict(MLA, index_topk=64, index_head_dim=8, index_n_heads=4, index_topk_freq=3)),
    "glm4_moe_lite": ("glm4_moe_lite", dict(MLA, mlp_layer_types=["dense", "dense", "sparse", "dense", "sparse", "sparse"])),
    "dots1": ("dots1", dict(SMALL, n_routed_experts=8, n_shared_experts=2, first_k_dense_replace=1, **MIXED)),
    "exaone_moe": ("exaone_moe", dict(SMALL, num_experts=8, sliding_window=WINDOW, num_shared_experts=2, **MIXED)),
    "flex_olmo": ("flex_olmo", dict(SMALL, num_experts=8, num_experts_per_tok=2)),
    "solar_open": ("solar_open", dict(SMALL, head_dim=16, n_routed_experts=8, **MIXED)),
    "hy_v3": ("hy_v3", dict(SMALL, head_dim=16, num_experts=8, **MIXED)),
    "mellum": ("mellum", dict(SMALL, head_dim=16, num_experts=8, sliding_window=WINDOW, layer_types=["full_attention", "sliding_attention"] * 3, **MIXED)),
    "mistral4": ("mistral4", dict(MLA, first_k_dense_replace=1)),
    "sarvam_moe": ("sarvam_moe", dict(SMALL, head_dim=16, n_routed_experts=8, **MIXED)),
    "sarvam_mla": ("sarvam_mla", dict(MLA, q_lora_rank=None)),
    "arcee": ("arcee", dict(SMALL, mlp_bias=True)),
    "cwm": ("cwm", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "granite_swa": ("granite_swa", dict(SMALL, sliding_window=WINDOW)),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", dict(SMALL, head_dim=16)),
    "internlm3": ("internlm3", dict(SMALL, head_dim=16, attention_bias=True, mlp_bias=True)),
    "iquestcoder": ("iquestcoder", dict(SMALL, head_dim=16)),
    "jais2": ("jais2", SMALL),
    "minicpm3": ("minicpm3", dict(SMALL, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=20, qk_nope_head_dim=8, qk_rope_head_dim=4)),
    "ministral": ("ministral", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "nemotron": ("nemotron", dict(SMALL, attention_bias=True)),
    "vaultgemma": ("vaultgemma", dict(SMALL, head_dim=16, sliding_window=WINDOW)),
    "youtu": ("youtu", dict(SMALL, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=20, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=12)),
    "qwen3_next": ("qwen3_next", dict(SMALL, head_dim=16, num_experts=8, shared_expert_intermediate_size=40, **LINEAR, **MIXED)),
    "qwen3_5": ("qwen3_5", dict(text_config=turned(dict(SMALL, head_dim=16, **LINEAR), 1, 1, 0), vision_config=EYE)),
    "qwen3_5_moe": ("qwen3_5_moe", dict(text_config=turned(dict(SMALL, head_dim=16, num_experts=8, shared_expert_intermediate_size=40, layer_types=["full_attention", "linear_attention"] * 3, **LINEAR, **MIXED), 1, 1, 0), vision_config=EYE)),
    "gemma4_text": ("gemma4_text", dict(SMALL, head_dim=16, global_head_dim=24, sliding_window=WINDOW, hidden_size_per_layer_input=12, vocab_size_per_layer_input=V)),
    "gemma4_text, shared": ("gemma4_text", dict(SMALL, head_dim=16, global_head_dim=24, sliding_window=WINDOW, hidden_size_per_layer_input=12, vocab_size_per_layer_input=V, num_kv_shared_layers=2, use_double_wide_mlp=True, layer_types=["sliding_attention", "full_attention"] * 3)),
    "gemma4_text, mixtures": ("gemma4_text", dict(SMALL, head_dim=16, global_head_dim=24, num_global_key_value_heads=1, attention_k_eq_v=True, sliding_window=WINDOW, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=8, top_k_experts=2, moe_intermediate_size=24)),
    "ernie4_5_moe": ("ernie4_5_moe", dict(SMALL, head_dim=16, moe_num_experts=8, moe_k=2, moe_intermediate_size=24, moe_layer_start_index=1, moe_layer_end_index=4, moe_layer_interval=2)),
    "granitemoehybrid": ("granitemoehybrid", dict(SMALL, num_local_experts=4, shared_intermediate_size=40, layer_types=["linear_attention", "full_attention"] * 3, **MAMBA)),
    "granitemoehybrid, dense": ("granitemoehybrid", dict(SMALL, num_local_experts=0, shared_intermediate_size=40, layer_types=["linear_attention"] * 5 + ["full_attention"], **MAMBA)),
    "bamba": ("bamba", dict(SMALL, attn_layer_indices=[2, 4], **MAMBA)),
    "nemotron_h": ("nemotron_h", dict(NEMOTRON, hybrid_override_pattern="M-M*-ME")),
    "nemotron_h, latents": ("nemotron_h", dict(NEMOTRON, moe_latent_size=20, layers_block_type=["linear_attention", "moe", "full_attention", "moe", "mlp", "linear_attention"])),
    "mamba2": ("mamba2", dict(vocab_size=V, hidden_size=32, num_hidden_layers=3, num_heads=8, head_dim=8, n_groups=2, state_size=16, chunk_size=4)),
}  # fmt: skip


def tiny(name: str) -> Any:
    kind, sizes = TINY[name]
    return T.AutoConfig.for_model(kind, dtype="float32", pad_token_id=0, **sizes)


def running(config: Any) -> Any:
    torch.manual_seed(0)
    m = auto(config).from_config(config, attn_implementation="eager").eval()
    for p in m.parameters():  # experts and routers are left as they lie in memory
        torch.nn.init.normal_(p, std=0.02)
    return m


PRODUCTS = {torch.ops.aten.mm, torch.ops.aten.addmm}


def counted(m: Any, tokens: int) -> tuple[int, int]:
    """FLOPs of a prefill of one sequence: of products with weights, and of attention."""
    if hasattr(m, "set_experts_implementation"):
        m.set_experts_implementation("eager")
    with torch.no_grad(), FlopCounterMode(display=False) as f:
        m(torch.randint(1, V, (1, tokens)), use_cache=False, logits_to_keep=1)
    linear, attention = 0, 0
    scans = {name for name, x in m.named_modules() if hasattr(x, "A_log") and name.endswith((".mamba", ".mixer"))}
    for module, ops in f.get_flop_counts().items():  # state spaces are products in placer alone
        if module.split(".", 1)[-1] in scans:
            attention -= sum(n for op, n in ops.items() if op not in PRODUCTS)
    for op, n in f.get_flop_counts()["Global"].items():
        if op in PRODUCTS:
            linear += n
        else:
            attention += n
    # Tables of rotary positions are a product too.
    for module, ops in f.get_flop_counts().items():
        if module.rsplit(".", 1)[-1].startswith("rotary_emb") and ".layers." not in module and ".visual." not in module:
            attention -= sum(n for op, n in ops.items() if op not in PRODUCTS)
    return linear, attention


RECURRENT = {"qwen3_next", "qwen3_5", "qwen3_5_moe"}


def difference(c: Any) -> int:
    """The operations of linear attention that torch counts beyond placer's: convolutions, which
    go over their padding too. Triangular systems, 64 x 64, it does not count."""
    keys, values = c.linear_num_key_heads * c.linear_key_head_dim, c.linear_num_value_heads * c.linear_value_head_dim
    convolved = 2 * (2 * keys + values) * c.linear_conv_kernel_dim * (WINDOW + c.linear_conv_kernel_dim - 1)
    solved = 2 * 64 * 64 * c.linear_num_value_heads * (c.linear_key_head_dim + c.linear_value_head_dim)
    return c.layer_types.count("linear_attention") * (convolved - solved)


@pytest.mark.parametrize("name", TINY)
def test_operations(name: str, tmp_path: Path) -> None:
    config = tiny(name)
    graph = described(tmp_path, config, seq=WINDOW, attention_kernels=3)
    model = running(config)
    assert parameters(graph) == of_decoder(model)
    linear = attention = 0
    scans = {op["module"].removesuffix(".conv1d") for op in graph["ops"] if op["kind"] == "CausalConv1D" and ".linear_attn" not in op["module"]}
    for op in graph["ops"]:
        if name == "llama4_text" and op["kind"] == "BatchMatMul" and op["module"].endswith(".experts"):
            attention += op["flops"] * config.num_local_experts // config.num_experts_per_tok  # transformers has every token in every expert, and batched
        elif op["kind"] == "BatchMatMul" and op["module"] in scans:
            continue
        elif op["kind"] == "MatMul" or op["kind"] == "BatchMatMul" and op["module"].endswith(".experts"):
            linear += op["flops"]
        elif op["kind"] == "BatchMatMul":
            attention += op["flops"]
    if name in RECURRENT:
        attention += difference(config.get_text_config())
    assert (linear, attention) == counted(model, WINDOW)


@pytest.mark.parametrize("name", TINY)
def test_cache(name: str, tmp_path: Path) -> None:
    """Behind a prefill of S tokens, layers with a window keep a token less than it, and recurrent ones a state."""
    config = tiny(name)
    graph = described(tmp_path, config, seq=1, past=S)
    kept = sum(op.get("resident", 0) for op in graph["ops"] if op["kind"] == "VariableV2" and op["name"].endswith("_cache"))
    with torch.no_grad():
        out = running(config)(torch.randint(1, V, (1, S)), use_cache=True)
    cache = getattr(out, "cache", None) or out.past_key_values
    if name == "falcon, later":  # of which transformers keeps a copy for each head of queries
        kept *= config.num_attention_heads // config.num_kv_heads
    held = [t for layer in cache.layers for name in ("keys", "values", "indexer_keys") if (t := getattr(layer, name, None)) is not None]
    for layer in cache.layers:
        if hasattr(layer, "recurrent_states"):  # transformers keeps a token more than a convolution reads
            held += [layer.recurrent_states[0], layer.conv_states[0][..., 1:]]
    assert kept == sum(t.numel() * t.element_size() for t in held)


def test_defaults() -> None:
    """What placer takes where a file says nothing is what transformers' classes take."""
    at = Path(__file__).parents[2] / "graph/formats/decoder/defaults.json"
    for kind, values in json.loads(at.read_text()).items():
        fields = T.CONFIG_MAPPING[kind].__dataclass_fields__
        assert values == {k: fields[k].default for k in values}, kind
