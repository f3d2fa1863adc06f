"""Small models of every kind that transformers has, trained three steps by a captured step on
one device and on two, beside plain torch."""

from __future__ import annotations

from typing import Any, Callable

import peft
import pytest
import still
import torch
import transformers as T
from placer_torch import Loop, capture
from placer_torch.errors import CaptureError
from test_as_torch import adamw, agree, seed  # noqa: F401 (a fixture)
from test_run import scattered

Batches = Callable[[], list[dict[str, Any]]]
V, B, S = 50, 2, 12
LEFT = torch.cat([torch.zeros(B, 3), torch.ones(B, S - 3)], 1).long()


def ids(n: int = 3) -> list[torch.Tensor]:
    return [torch.randint(3, V, (B, S)) for _ in range(n)]


def text() -> list[dict[str, Any]]:
    return [dict(input_ids=x, labels=x.clone()) for x in ids()]


def padded() -> list[dict[str, Any]]:
    return [dict(d, attention_mask=LEFT) for d in text()]


def pictures(size: int = 16) -> list[dict[str, Any]]:
    return [dict(pixel_values=torch.randn(B, 3, size, size), labels=torch.randint(0, 2, (B,))) for _ in range(3)]


def pairs() -> list[dict[str, Any]]:
    return [dict(input_ids=x, pixel_values=torch.randn(B, 3, 16, 16), return_loss=True) for x in ids()]


def sounds() -> list[dict[str, Any]]:
    return [dict(input_values=torch.randn(B, 400), labels=torch.randint(0, 2, (B,))) for _ in range(3)]


def loss(m: Any, b: Any) -> torch.Tensor:
    return m(**b).loss


WIDTH: dict[str, Any] = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
ENCODER = dict(WIDTH, vocab_size=V, intermediate_size=32, max_position_embeddings=64)
TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
DECODER = dict(ENCODER, **TOKENS, num_key_value_heads=1)
VISION = dict(WIDTH, intermediate_size=32, image_size=16, patch_size=8)
BOTH = dict(vocab_size=V, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32)
T5 = dict(vocab_size=V, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)

MODELS: dict[str, tuple[Any, Any, Batches]] = {
    "gpt2": (T.GPT2LMHeadModel, T.GPT2Config(vocab_size=V, n_embd=16, n_layer=2, n_head=2, n_positions=64), text),
    "llama": (T.LlamaForCausalLM, T.LlamaConfig(**DECODER, head_dim=8), text),
    "llama, padded": (T.LlamaForCausalLM, T.LlamaConfig(**DECODER, head_dim=8), padded),
    "mistral": (T.MistralForCausalLM, T.MistralConfig(**DECODER, head_dim=8), text),
    "qwen2": (T.Qwen2ForCausalLM, T.Qwen2Config(**DECODER), text),
    "qwen3": (T.Qwen3ForCausalLM, T.Qwen3Config(**DECODER, head_dim=8), text),
    "qwen3 mixture": (T.Qwen3MoeForCausalLM, T.Qwen3MoeConfig(**DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16), text),
    "gemma2": (T.Gemma2ForCausalLM, T.Gemma2Config(**DECODER, head_dim=8), text),
    "gemma3": (T.Gemma3ForCausalLM, T.Gemma3TextConfig(**DECODER, head_dim=8), text),
    "phi3": (T.Phi3ForCausalLM, T.Phi3Config(**DECODER), text),
    "mixtral": (T.MixtralForCausalLM, T.MixtralConfig(**DECODER, head_dim=8, num_local_experts=4), text),
    "gpt-oss": (T.GptOssForCausalLM, T.GptOssConfig(**DECODER, head_dim=8, num_local_experts=4, num_experts_per_tok=2), text),
    "deepseek v3": (
        T.DeepseekV3ForCausalLM,
        T.DeepseekV3Config(
            **dict(ENCODER, **TOKENS), num_key_value_heads=2, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
            n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=16, first_k_dense_replace=1,
        ),
        text,
    ),
    "olmo2": (T.Olmo2ForCausalLM, T.Olmo2Config(**DECODER), text),
    "cohere": (T.CohereForCausalLM, T.CohereConfig(**DECODER), text),
    "starcoder2": (T.Starcoder2ForCausalLM, T.Starcoder2Config(**DECODER), text),
    "granite": (T.GraniteForCausalLM, T.GraniteConfig(**DECODER), text),
    "opt": (T.OPTForCausalLM, T.OPTConfig(**WIDTH, vocab_size=V, ffn_dim=32, max_position_embeddings=64, word_embed_proj_dim=16, pad_token_id=1), text),
    "bloom": (T.BloomForCausalLM, T.BloomConfig(vocab_size=V, hidden_size=16, n_layer=2, n_head=2), text),
    "falcon": (T.FalconForCausalLM, T.FalconConfig(**WIDTH, vocab_size=V), text),
    "gpt neox": (T.GPTNeoXForCausalLM, T.GPTNeoXConfig(**ENCODER), text),
    "mamba": (T.MambaForCausalLM, T.MambaConfig(vocab_size=V, hidden_size=16, num_hidden_layers=2, state_size=4), text),
    "mamba2": (T.Mamba2ForCausalLM, T.Mamba2Config(vocab_size=V, hidden_size=16, num_hidden_layers=2, state_size=4, num_heads=4, head_dim=8, n_groups=1, chunk_size=4), text),
    "rwkv": (T.RwkvForCausalLM, T.RwkvConfig(vocab_size=V, hidden_size=16, num_hidden_layers=2, context_length=64), text),
    "bert": (T.BertForMaskedLM, T.BertConfig(**ENCODER), text),
    "roberta": (T.RobertaForMaskedLM, T.RobertaConfig(**ENCODER), text),
    "distilbert": (T.DistilBertForMaskedLM, T.DistilBertConfig(vocab_size=V, dim=16, n_layers=2, n_heads=2, hidden_dim=32), text),
    "electra": (T.ElectraForMaskedLM, T.ElectraConfig(**ENCODER, embedding_size=16), text),
    "albert": (T.AlbertForMaskedLM, T.AlbertConfig(**ENCODER, embedding_size=8), text),
    "longformer": (T.LongformerForMaskedLM, T.LongformerConfig(**ENCODER, attention_window=[4, 4], pad_token_id=0), text),
    "deberta": (T.DebertaV2ForMaskedLM, T.DebertaV2Config(**ENCODER), text),
    "modernbert": (T.ModernBertForMaskedLM, T.ModernBertConfig(**ENCODER, **TOKENS, cls_token_id=1, sep_token_id=2), text),
    "xlnet": (T.XLNetLMHeadModel, T.XLNetConfig(vocab_size=V, d_model=16, n_layer=2, n_head=2, d_inner=32), text),
    "t5": (T.T5ForConditionalGeneration, T.T5Config(**T5), text),
    "mt5": (T.MT5ForConditionalGeneration, T.MT5Config(**T5), text),
    "bart": (T.BartForConditionalGeneration, T.BartConfig(**BOTH, max_position_embeddings=64), text),
    "led": (T.LEDForConditionalGeneration, T.LEDConfig(**BOTH, attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64), text),
    "pegasus": (T.PegasusForConditionalGeneration, T.PegasusConfig(**BOTH, max_position_embeddings=64), text),
    "whisper": (
        T.WhisperForConditionalGeneration,
        T.WhisperConfig(**BOTH, **TOKENS, decoder_start_token_id=1, max_source_positions=20, max_target_positions=20, num_mel_bins=8),
        lambda: [dict(input_features=torch.randn(B, 8, 40), labels=x) for x in ids()],
    ),
    "vit": (T.ViTForImageClassification, T.ViTConfig(**VISION), pictures),
    "deit": (T.DeiTForImageClassification, T.DeiTConfig(**VISION), pictures),
    "beit": (T.BeitForImageClassification, T.BeitConfig(**VISION), pictures),
    "dinov2": (T.Dinov2ForImageClassification, T.Dinov2Config(**WIDTH, image_size=16, patch_size=8), pictures),
    "swin": (T.SwinForImageClassification, T.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4), lambda: pictures(32)),
    "convnext": (T.ConvNextForImageClassification, T.ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1]), lambda: pictures(64)),
    "resnet": (T.ResNetForImageClassification, T.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]), lambda: pictures(32)),
    "regnet": (T.RegNetForImageClassification, T.RegNetConfig(embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], groups_width=4), lambda: pictures(32)),
    "segformer": (
        T.SegformerForSemanticSegmentation,
        T.SegformerConfig(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=8, num_labels=3),
        lambda: [dict(pixel_values=torch.randn(B, 3, 64, 64), labels=torch.randint(0, 3, (B, 64, 64))) for _ in range(3)],
    ),
    "timesformer": (
        T.TimesformerForVideoClassification,
        T.TimesformerConfig(**VISION, num_frames=2),
        lambda: [dict(pixel_values=torch.randn(B, 2, 3, 16, 16), labels=torch.randint(0, 2, (B,))) for _ in range(3)],
    ),
    "clip": (T.CLIPModel, T.CLIPConfig(text_config=dict(ENCODER), vision_config=dict(VISION), projection_dim=8), pairs),
    "siglip": (T.SiglipModel, T.SiglipConfig(text_config=dict(ENCODER, max_position_embeddings=S), vision_config=dict(VISION)), pairs),
    "blip": (
        T.BlipForConditionalGeneration,
        T.BlipConfig(text_config=dict(ENCODER, **TOKENS, encoder_hidden_size=16, sep_token_id=2), vision_config=dict(VISION), projection_dim=8),
        lambda: [dict(input_ids=x, labels=x.clone(), pixel_values=torch.randn(B, 3, 16, 16)) for x in ids()],
    ),
    "hubert": (
        T.HubertForSequenceClassification,
        T.HubertConfig(**WIDTH, vocab_size=V, intermediate_size=32, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, mask_time_prob=0.0, classifier_proj_size=8),
        sounds,
    ),
    "patchtst": (
        T.PatchTSTForPrediction,
        T.PatchTSTConfig(num_input_channels=2, context_length=16, patch_length=4, patch_stride=4, prediction_length=4, d_model=8, num_hidden_layers=2, num_attention_heads=2, ffn_dim=16),
        lambda: [dict(past_values=torch.randn(B, 16, 2), future_values=torch.randn(B, 4, 2)) for _ in range(3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    make, config, batches = MODELS[name]
    agree(make(still.config(config)).train(), loss, batches(), adamw)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5"])
def test_checkpointing(name: str) -> None:
    make, config, batches = MODELS[name]
    m = make(still.config(config)).train()
    m.gradient_checkpointing_enable()
    agree(m, loss, batches(), adamw)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5"])
def test_eager_attention(name: str) -> None:
    make, config, batches = MODELS[name]
    m = make(still.config(config)).train()
    m.set_attn_implementation("eager")
    agree(m, loss, batches(), adamw)


@pytest.mark.parametrize("more", [{}, {"use_dora": True}])
def test_adapters(more: dict[str, Any]) -> None:
    """Low-rank adapters beside frozen weights."""
    make, config, batches = MODELS["llama"]
    m = peft.get_peft_model(make(still.config(config)), peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.0, **more))
    agree(m.train(), loss, batches(), adamw)


@pytest.mark.parametrize("optimizer", ["AdamW", "Adafactor", "RMSprop", "NAdam"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5", "mixtral"])
def test_clipped(name: str, optimizer: str) -> None:
    """By the norm of all gradients, as transformers' Trainer clips them."""
    make, config, batches = MODELS[name]
    agree(make(still.config(config)).train(), loss, batches(), lambda m: getattr(torch.optim, optimizer)(m.parameters(), lr=1e-3, foreach=False), clip_norm=0.5)


def test_accumulated() -> None:
    """Three batches in one update."""
    make, config, batches = MODELS["llama"]
    several, own = batches(), make(still.config(config)).train()
    optimizer = adamw(own)
    p = capture(own, loss, several, optimizer, clip_norm=1.0, accumulate=True)
    with Loop(p, scattered(p, 0.6), own, workers=True) as loop:
        for _ in range(2):
            optimizer.zero_grad()
            for b in several:
                (loss(own, b) / len(several)).backward()
            norm = torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0, foreach=False)
            optimizer.step()
            loop.step(several)
            torch.testing.assert_close(loop.grad_norm(), norm.item(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(dict(loop.state_dict()), dict(own.state_dict()))


def bfloat16(m: Any, b: Any) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return loss(m, b)


@pytest.mark.parametrize("of", [loss, bfloat16])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_as_the_trainer(name: str, of: Any) -> None:
    """transformers' Trainer: weights alone decay, the rate warms up, gradients are accumulated and
    clipped, and in decoders the loss of several batches is that of all their tokens."""
    make, config, _ = MODELS[name]
    own = make(still.config(config)).train()
    decayed, others = [[p for p in own.parameters() if (p.dim() > 1) == x] for x in (True, False)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.5}, {"params": others, "weight_decay": 0.0}], lr=0.01, foreach=False)
    rates = T.get_linear_schedule_with_warmup(optimizer, 2, 5)
    weighed = name != "bert"
    several = [ragged(2, weighed) for _ in range(5)]
    mean = (lambda m, b: 2 * of(m, b)) if weighed else of
    p = capture(own, mean, several[0], optimizer, clip_norm=1.0, accumulate=True)
    with Loop(p, scattered(p, 0.6), own, workers=True) as loop:
        for batches in several:
            optimizer.zero_grad()
            want = [mean(own, b) / 2 for b in batches]
            for x in want:
                x.backward()
            norm = torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0, foreach=False)
            optimizer.step()
            torch.testing.assert_close(loop.step(batches), sum(x.item() for x in want), rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(loop.grad_norm(), norm.item(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(dict(loop.state_dict()), dict(own.state_dict()))
            rates.step()
            loop.set_lr(rates.get_last_lr())


def ragged(n: int, weighed: bool) -> list[dict[str, Any]]:
    """Batches of texts of several lengths, weighed by the tokens of all."""
    masks = [(torch.arange(S) < torch.randint(5, S + 1, (B, 1))).long() for _ in range(n)]
    batches = [dict(input_ids=x, attention_mask=m, labels=x.masked_fill(m == 0, -100)) for x, m in zip(ids(n), masks)]
    tokens = torch.stack(masks)[:, :, 1:].sum()
    return [dict(b, num_items_in_batch=tokens) for b in batches] if weighed else batches


WAV2VEC2 = T.Wav2Vec2Config(**WIDTH, vocab_size=V, intermediate_size=32, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, mask_time_prob=0.0)
GLOBAL = torch.cat([torch.ones(B, 1), torch.zeros(B, S - 1)], 1).long()
REFUSED: dict[str, tuple[Any, Any, Batches, str]] = {
    "longformer, a mask of the batch": (*MODELS["longformer"][:2], padded, "modeling_longformer.py.*takes a number out of a tensor"),
    "led, a mask of the batch": (*MODELS["led"][:2], padded, "modeling_led.py.*takes a number out of a tensor"),
    "longformer, global attention": (*MODELS["longformer"][:2], lambda: [dict(d, global_attention_mask=GLOBAL) for d in text()], "modeling_longformer.py.*takes a number out of a tensor"),
    "led, global attention": (*MODELS["led"][:2], lambda: [dict(d, global_attention_mask=GLOBAL) for d in text()], "modeling_led.py.*takes a number out of a tensor"),
    "wav2vec2": (T.Wav2Vec2ForCTC, WAV2VEC2, lambda: [dict(d, labels=d["labels"][:, None]) for d in sounds()], "modeling_wav2vec2.py.*takes a number out of a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Models that ask for a number on the host that the batch may change."""
    make, config, batches, why = REFUSED[name]
    m = make(still.config(config)).train()
    with pytest.raises(CaptureError, match=why):
        capture(m, loss, batches()[0], adamw(m))


@pytest.mark.parametrize("name", ["longformer", "led"])
def test_mask_of_the_code(name: str) -> None:
    """The model asks whether a token attends to all: of a mask that is the same in every step."""
    make, config, batches = MODELS[name]
    agree(make(still.config(config)).train(), lambda m, b: m(**b, attention_mask=LEFT).loss, batches(), adamw)


@pytest.mark.parametrize("name", ["longformer", "led"])
def test_global_attention_of_the_code(name: str) -> None:
    """The number is known, the places of ones in the mask are not."""
    make, config, batches = MODELS[name]
    m = make(still.config(config)).train()
    with pytest.raises(CaptureError, match=f"modeling_{name}.py.*shape depends on values"):
        capture(m, lambda m, b: m(**b, global_attention_mask=GLOBAL).loss, batches()[0], adamw(m))
