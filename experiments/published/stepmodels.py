"""Models whose steps others measured, for placer_torch capture: on the meta device, so that no
memory is used. capture.sh beside this file captures them."""

import torch
from torch import nn


def image_model(name="resnet50", batch=256, half=False, train=True, one_kernel=False):
    """A model of timm; SGD with momentum, all of it in f16 where half. Attention is products and a
    softmax, in the model's own type, or one kernel."""
    import timm
    from timm.layers import set_fused_attn

    set_fused_attn(one_kernel)
    with torch.device("meta"):
        model = timm.create_model(name)
        x, labels = torch.empty(batch, 3, 224, 224), torch.empty(batch, dtype=torch.long)
    if half:
        model, x = model.half(), x.half()
    if not train:
        return model.eval(), None, (x,), None

    def loss(model, batch):
        x, labels = batch
        return nn.functional.cross_entropy(model(x), labels)

    return model, loss, (x, labels), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


class Bert(nn.Module):
    """BERT-large, no dropout. In pre-training, with both heads, the language model's is of the
    masked tokens alone; else one that answers questions, of every token."""

    def __init__(self, pretraining):
        super().__init__()
        from transformers import BertConfig, BertModel

        config = BertConfig(
            vocab_size=30528, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager",
        )
        self.bert = BertModel(config, add_pooling_layer=pretraining)
        self.two = nn.Linear(1024, 2)
        if pretraining:
            self.dense, self.norm = nn.Linear(1024, 1024), nn.LayerNorm(1024)
            self.bias = nn.Parameter(torch.empty(30528))

    def forward(self, ids, masked=None):
        out = self.bert(ids)
        if masked is None:
            return self.two(out.last_hidden_state)
        y = self.norm(nn.functional.gelu(self.dense(out.last_hidden_state.flatten(0, 1)[masked])))
        return nn.functional.linear(y, self.bert.embeddings.word_embeddings.weight, self.bias), self.two(out.pooler_output)


def bert_large(batch, tokens, masked=0, half=False):
    """Training of BERT-large, f32 products in tf32. In pre-training, with so many masked tokens of
    a sequence, forward and backward of one of many accumulated batches; else a whole step."""
    torch.set_float32_matmul_precision("high")
    with torch.device("meta"):
        model = Bert(masked > 0)
        ids = torch.empty(batch, tokens, dtype=torch.long)
        at = torch.empty(batch * masked, dtype=torch.long)
        labels, pair = torch.empty(batch * masked, dtype=torch.long), torch.empty(batch, dtype=torch.long)
    if half:
        model = model.half()

    def pretraining(model, batch):
        ids, at, labels, order = batch
        words, following = model(ids, at)
        return nn.functional.cross_entropy(words, labels) + nn.functional.cross_entropy(following, order)

    def answers(model, batch):
        ids, begin, end = batch
        first, last = model(ids).unbind(-1)
        return nn.functional.cross_entropy(first, begin) + nn.functional.cross_entropy(last, end)

    if masked:
        return model, pretraining, (ids, at, labels, pair), None
    return model, answers, (ids, pair, pair.clone()), torch.optim.AdamW(model.parameters(), lr=1e-5)
