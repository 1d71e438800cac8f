"""The talker and its code predictor: the official architecture with the official parameter names.

`Talker.forward` is the training pass over whole sequences; `speak.py` holds the step-by-step use.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from codec import GatedMlp, RmsNorm
from layout import NOTHING

EPSILON = 1e-6
THETA = 1e6
CONTROLS = 64                           # control ids that prompts may hold, counted from the last code
CONTROLS_TRAINED = 8                    # ids after the codes that the head learns; EOS is among them


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


def one_hot(ids, size):
    """Rows for a matrix product that looks vectors up: no scatter in the backward pass. Negative ids give zeros."""
    hot = ids[..., None] == torch.arange(size, device=ids.device)
    return hot.to(torch.bfloat16 if ids.is_cuda else torch.float32)


def lighter(table):
    return table.to(torch.bfloat16) if table.is_cuda else table.float()


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
        """codes [.., books] (-1: nothing) -> the sum of their vectors [.., D], as one product with one-hot rows."""
        return one_hot(codes, tables.shape[1]).flatten(-2) @ lighter(tables).flatten(0, 1)

    def embed_each(self, tables, codes):
        """codes [n, books] -> [n, books, D]"""
        return torch.bmm(one_hot(codes.T, tables.shape[1]), lighter(tables[:codes.shape[1]])).transpose(0, 1)

    def inputs(self, text, codec):
        """Sum of the two streams [batch, time, D]; -1 stands for nothing. Codec ids are control ids here."""
        texts = self.text_projection(self.model.text_embedding.weight)
        first = self.shape["entries"]
        controls = self.model.codec_embedding.weight[first:first + CONTROLS]
        return one_hot(text, len(texts)) @ lighter(texts) + one_hot(codec - first, CONTROLS) @ lighter(controls)

    def hidden(self, rows):
        """The stack's output [rows, time, D] for packed rows: a position sees those of its own utterance before it."""
        time = rows.text.shape[1]
        entering = self.embed_codes(self.tables(), rows.entering)
        x = self.inputs(rows.text, rows.codec)
        i = torch.arange(time, device=x.device)
        seen = (rows.owner[:, :, None] == rows.owner[:, None]) & (i[:, None] >= i)
        mask = torch.zeros(seen.shape, dtype=x.dtype, device=x.device).masked_fill(~seen, -torch.inf)[:, None]
        return self.model.run(x + entering, i, mask=mask.expand(-1, self.shape["heads"], -1, -1))

    def forward(self, rows, chosen):
        """Packed rows (layout.Rows) and the flat positions that train the predictor -> (c0 loss, losses of c1..,
        share of right c0, shares of right c1..)."""
        h = self.hidden(rows).flatten(0, 1)
        target = rows.target.flatten()
        logits = F.linear(h, self.codec_head.weight[:self.shape["entries"] + CONTROLS_TRAINED].to(h.dtype)).float()
        loss_first = F.cross_entropy(logits, target, ignore_index=NOTHING)
        wanted = target != NOTHING
        right = ((logits.argmax(-1) == target) & wanted).sum() / wanted.sum()
        codes, weight = rows.codes.flatten(0, 1)[chosen], rows.made.flatten()[chosen].float()
        logits = self.code_predictor.logits(h[chosen], self.embed_each(self.tables(), codes[:, :-1])).float()
        wanted = codes[:, 1:].T
        loss_rest = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(len(wanted), -1)
        right_rest = (logits.argmax(-1) == wanted).float()
        scale = weight / weight.sum()
        return loss_first, (loss_rest * scale).sum(1), right.detach(), (right_rest * scale).sum(1).detach()
