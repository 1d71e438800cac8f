"""The talker and its code predictor: the official architecture with the official parameter names.

`Talker.forward` is the training pass over whole sequences; `speak.py` holds the step-by-step use.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from codec import GatedMlp, RmsNorm

EPSILON = 1e-6
THETA = 1e6


def rotary(positions, width):
    """cos and sin for split-half rotation; positions [time], or [batch, 1] when each row is at its own."""
    frequency = THETA ** (-torch.arange(0, width, 2, device=positions.device).float() / width)
    angle = positions.float()[..., None] * frequency
    angle = torch.cat((angle, angle), -1)
    if positions.dim() == 2:
        angle = angle[:, None]
    return angle.cos(), angle.sin()


def turn(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Attention(nn.Module):
    """Grouped heads, norms on queries and keys. With a cache (keys, values, position) it works one step at a time."""

    def __init__(self, width, heads, kv_heads, head_dim):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q_proj = nn.Linear(width, heads * head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(heads * head_dim, width, bias=False)
        self.q_norm, self.k_norm = RmsNorm(head_dim, EPSILON), RmsNorm(head_dim, EPSILON)

    def forward(self, x, cos, sin, cache=None, mask=None):
        batch, time, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, time, self.heads, self.head_dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, time, self.kv_heads, self.head_dim)).transpose(1, 2)
        v = self.v_proj(x).view(batch, time, self.kv_heads, self.head_dim).transpose(1, 2)
        q, k = turn(q, cos, sin).to(v.dtype), turn(k, cos, sin).to(v.dtype)
        if cache is not None:
            k, v = cache.extend(k, v)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None and time > 1)
        return self.o_proj(y.transpose(1, 2).reshape(batch, time, -1))


class Layer(nn.Module):
    def __init__(self, width, inner, heads, kv_heads, head_dim, drop=0.):
        super().__init__()
        self.self_attn, self.mlp = Attention(width, heads, kv_heads, head_dim), GatedMlp(width, inner)
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width, EPSILON), RmsNorm(width, EPSILON)
        self.drop = drop

    def forward(self, x, cos, sin, cache=None, mask=None):
        x = x + F.dropout(self.self_attn(self.input_layernorm(x), cos, sin, cache, mask), self.drop, self.training)
        return x + F.dropout(self.mlp(self.post_attention_layernorm(x)), self.drop, self.training)


class Stack(nn.Module):
    def run(self, x, positions, caches=None, mask=None):
        """The residual stream stays in fp32 whatever the autocast."""
        x = x.float()
        cos, sin = rotary(positions, self.layers[0].self_attn.head_dim)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, caches[i] if caches else None, mask)
        return self.norm(x)


class TalkerStack(Stack):
    def __init__(self, t, codec_ids, drop):
        super().__init__()
        self.text_embedding = nn.Embedding(t["text_vocabulary"], t["text_hidden"])
        self.codec_embedding = nn.Embedding(codec_ids, t["hidden"])
        self.layers = nn.ModuleList(Layer(t["hidden"], t["intermediate"], t["heads"], t["kv_heads"], t["head_dim"],
                                          drop) for _ in range(t["layers"]))
        self.norm = RmsNorm(t["hidden"], EPSILON)


class PredictorStack(Stack):
    def __init__(self, t):
        super().__init__()
        n = t["predictor_hidden"]
        self.codec_embedding = nn.ModuleList(nn.Embedding(t["entries"], t["hidden"])
                                             for _ in range(t["codebooks"] - 1))
        self.layers = nn.ModuleList(Layer(n, t["predictor_intermediate"], t["predictor_heads"],
                                          t["predictor_kv_heads"], t["predictor_head_dim"])
                                    for _ in range(t["predictor_layers"]))
        self.norm = RmsNorm(n, EPSILON)


class Predictor(nn.Module):
    def __init__(self, t):
        super().__init__()
        n = t["predictor_hidden"]
        self.model = PredictorStack(t)
        self.lm_head = nn.ModuleList(nn.Linear(n, t["entries"], bias=False) for _ in range(t["codebooks"] - 1))
        self.small_to_mtp_projection = nn.Linear(t["hidden"], n)

    def logits(self, hidden, vectors):
        """hidden [n, D], vectors [n, books - 1, D] of codes 0..books-2 -> logits [books - 1, n, entries]."""
        x = self.small_to_mtp_projection(torch.cat((hidden[:, None].to(vectors.dtype), vectors), 1))
        y = self.model.run(x, torch.arange(x.shape[1], device=x.device))[:, 1:].transpose(0, 1)
        weights = torch.stack([head.weight for head in self.lm_head])
        return torch.bmm(y, weights.to(y.dtype).transpose(1, 2))


class TextProjection(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear_fc1, self.linear_fc2 = nn.Linear(inputs, inputs), nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear_fc2(F.silu(self.linear_fc1(x)))


class Talker(nn.Module):
    def __init__(self, t, codec_ids, drop=.05):
        super().__init__()
        self.shape = t
        self.model = TalkerStack(t, codec_ids, drop)
        self.text_projection = TextProjection(t["text_hidden"], t["hidden"])
        self.codec_head = nn.Linear(t["hidden"], codec_ids, bias=False)
        self.code_predictor = Predictor(t)
        self.initialise()

    @torch.no_grad()
    def initialise(self):
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                gain = .5 if name.endswith(("o_proj", "down_proj")) else 1.
                nn.init.normal_(module.weight, std=gain * module.weight.shape[1] ** -.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=.5)
        for table in self.code_predictor.model.codec_embedding:
            nn.init.normal_(table.weight, std=.2)
        nn.init.normal_(self.model.text_embedding.weight, std=1.)

    def tables(self):
        """All code embeddings [books, entries, D]."""
        first = self.model.codec_embedding.weight[:self.shape["entries"]]
        return torch.stack([first] + [e.weight for e in self.code_predictor.model.codec_embedding])

    def embed_codes(self, tables, codes):
        """codes [n, books] -> [books, n, D], as one-hot products: no scatter in the backward pass."""
        kind = torch.bfloat16 if codes.is_cuda else tables.dtype
        return torch.bmm(F.one_hot(codes.T, self.shape["entries"]).to(kind), tables.to(kind))

    def inputs(self, text, codec):
        """Sum of the two streams [batch, time, D]; -1 stands for nothing."""
        texts = self.text_projection(self.model.text_embedding.weight)
        codecs = self.model.codec_embedding.weight.to(texts.dtype)
        return F.embedding(text.clamp(min=0), texts) * (text >= 0)[..., None] + \
            F.embedding(codec.clamp(min=0), codecs) * (codec >= 0)[..., None]

    def forward(self, rows, chosen):
        """rows: see layout.Rows; chosen: which frames train the predictor -> (c0 loss, losses of c1.., c0 right)."""
        batch, time = rows.text.shape
        tables = self.tables()
        x = self.inputs(rows.text, rows.codec)
        frames = self.embed_codes(tables, rows.codes_in).sum(0)
        x = x.reshape(batch * time, -1).index_add(0, rows.enters, frames.to(x.dtype)).view(batch, time, -1)
        h = self.model.run(x, torch.arange(time, device=x.device)).reshape(batch * time, -1)
        logits = self.codec_head(h[rows.decides])
        loss_first = F.cross_entropy(logits.float(), rows.target)
        right = (logits.argmax(-1) == rows.target).float().mean()
        codes = rows.codes[chosen]
        vectors = self.embed_codes(tables, codes)[:-1].transpose(0, 1)
        logits = self.code_predictor.logits(h[rows.makes[chosen]], vectors)
        wanted = codes[:, 1:].T
        loss_rest = F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten(), reduction="none")
        right_rest = (logits.argmax(-1) == wanted).float().mean(1)
        return loss_first, loss_rest.view(len(wanted), -1).mean(1), right.detach(), right_rest.detach()
