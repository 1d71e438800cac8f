"""The codec: the official architecture with the official parameter names, for training.

Everything runs on [batch, time, channels]. Convolutions whose kernel is a multiple of their stride are written as
matrix products on reshaped frames, the others as 2-d convolutions on a channels-last view: both are several times
faster on a GPU than 1-d convolutions on [batch, channels, time], and give the same numbers.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def previous(x, n=1):
    """The sequence delayed by n steps, zeros in front."""
    return F.pad(x, (0, 0, n, 0))[:, :x.shape[1]]


class CausalConv(nn.Module):
    """Stride 1, zeros on the left."""

    def __init__(self, inputs, outputs, kernel, dilation=1):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel)
        self.dilation, self.left = dilation, (kernel - 1) * dilation

    def forward(self, x):
        weight, bias = self.conv.weight, self.conv.bias
        if weight.shape[2] == 1:
            return F.linear(x, weight[:, :, 0], bias)
        x = F.pad(x, (0, 0, self.left, 0)).transpose(1, 2).unsqueeze(2)
        y = F.conv2d(x, weight.unsqueeze(2).contiguous(memory_format=torch.channels_last), bias,
                     dilation=(1, self.dilation))
        return y.squeeze(2).transpose(1, 2)


class StridedConv(nn.Module):
    """Kernel twice the stride: each output sees the previous frame and its own."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 2 * stride, stride=stride)
        self.stride = stride

    def forward(self, x):
        batch, time, channels = x.shape
        frames = x.reshape(batch, time // self.stride, self.stride * channels)
        weight = self.conv.weight.transpose(1, 2).flatten(1)
        return F.linear(torch.cat((previous(frames), frames), 2), weight, self.conv.bias)


class TransposedConv(nn.Module):
    """Kernel equal to the stride, or twice the stride (then the tail of the last frame is cut)."""

    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        self.stride = stride

    def forward(self, x):
        batch, time, _ = x.shape
        weight, s = self.conv.weight.transpose(1, 2), self.stride
        matrix = weight[:, :s].flatten(1)
        if weight.shape[1] == 2 * s:
            matrix = torch.cat((matrix, weight[:, s:].flatten(1)))
            x = torch.cat((x, previous(x)), 2)
        y = x @ matrix.to(x.dtype)
        return y.reshape(batch, time * s, -1) + self.conv.bias.to(y.dtype)


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha, self.beta = nn.Parameter(torch.zeros(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        wave = torch.sin(x.float() * self.alpha.exp())
        return (x.float() + wave * wave / (self.beta.exp() + 1e-9)).to(x.dtype)


class ConvNeXt(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.dwconv = nn.Module()
        self.dwconv.conv = nn.Conv1d(channels, channels, 7, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), .1))

    def forward(self, x):
        h = self.dwconv.conv(F.pad(x, (0, 0, 6, 0)).transpose(1, 2)).transpose(1, 2)
        return x + self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(h))))


class ResidualUnit(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.act1, self.conv1 = Snake(channels), CausalConv(channels, channels, 7, dilation)
        self.act2, self.conv2 = Snake(channels), CausalConv(channels, channels, 1)

    def forward(self, x):
        return x + self.conv2(self.act2(self.conv1(self.act1(x))))


class UpBlock(nn.Module):
    def __init__(self, inputs, outputs, rate):
        super().__init__()
        self.block = nn.ModuleList([Snake(inputs), TransposedConv(inputs, outputs, 2 * rate, rate)] +
                                   [ResidualUnit(outputs, d) for d in (1, 3, 9)])

    def forward(self, x):
        for part in self.block:
            x = part(x)
        return x


class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), .1))

    def forward(self, x):
        return self.scale * x


def rotate(x, theta=1e4):
    """Split-half rotary embedding of [batch, heads, time, head_dim]."""
    time, width = x.shape[-2:]
    frequency = theta ** (-torch.arange(0, width, 2, device=x.device).float() / width)
    angle = torch.arange(time, device=x.device).float()[:, None] * frequency
    cos, sin = (torch.cat((f(angle), f(angle)), -1).to(x.dtype) for f in (torch.cos, torch.sin))
    half = width // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads, head_dim, window):
        super().__init__()
        self.heads, self.head_dim, self.window = heads, head_dim, window
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, heads * head_dim, bias=False) for _ in range(3))
        self.o_proj = nn.Linear(heads * head_dim, width, bias=False)

    def mask(self, time, device):
        i = torch.arange(time, device=device)
        return (i[:, None] >= i) & (i[:, None] - i < self.window)

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (p(x).view(batch, time, self.heads, self.head_dim).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q), rotate(k)
        if self.window and time > self.window:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(time, x.device))
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, time, -1))


class GatedMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class PlainMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class TransformerLayer(nn.Module):
    def __init__(self, width, attention, mlp, norm):
        super().__init__()
        self.self_attn, self.mlp = attention, mlp
        self.input_layernorm, self.post_attention_layernorm = norm(width), norm(width)
        self.self_attn_layer_scale, self.mlp_layer_scale = Scale(width), Scale(width)

    def forward(self, x):
        x = x + self.self_attn_layer_scale(self.self_attn(self.input_layernorm(x)))
        return x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))


class DecoderTransformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c["hidden"]
        self.input_proj, self.output_proj = nn.Linear(c["latent"], n), nn.Linear(n, c["latent"])
        self.norm = RmsNorm(n)
        self.layers = nn.ModuleList(
            TransformerLayer(n, Attention(n, c["heads"], c["head_dim"], c["window"]), GatedMlp(n, c["intermediate"]),
                             RmsNorm) for _ in range(c["layers"]))

    def forward(self, x):
        x = self.input_proj(x)
        for layer in self.layers:
            x = layer(x)
        return self.output_proj(self.norm(x))


class Decoder(nn.Module):
    """Dequantised vectors [batch, frames, 2 * width] -> sound [batch, samples]."""

    def __init__(self, c):
        super().__init__()
        latent, top, n = c["latent"], c["decoder_dim"], len(c["rates"])
        self.pre_conv = CausalConv(2 * c["width"], latent, 3)
        self.pre_transformer = DecoderTransformer(c)
        self.upsample = nn.ModuleList(nn.ModuleList([TransposedConv(latent, latent, r, r), ConvNeXt(latent)])
                                      for r in c["latent_rates"])
        blocks = [UpBlock(top >> i, top >> (i + 1), rate) for i, rate in enumerate(c["rates"])]
        self.decoder = nn.ModuleList([CausalConv(latent, top, 7)] + blocks +
                                     [Snake(top >> n), CausalConv(top >> n, 1, 7)])

    def forward(self, x):
        x = self.pre_transformer(self.pre_conv(x))
        for transposed, convnext in self.upsample:
            x = convnext(transposed(x))
        for part in self.decoder:
            x = part(x)
        return x[..., 0]


class EncoderUnit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.block = nn.ModuleList([nn.ELU(), CausalConv(channels, channels // 2, 3), nn.ELU(),
                                    CausalConv(channels // 2, channels, 1)])

    def forward(self, x):
        return x + self.block[3](F.elu(self.block[1](F.elu(x))))


class ConvEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c["filters"]
        layers = [CausalConv(1, n, 7)]
        for rate in reversed(c["encoder_rates"]):
            layers += [EncoderUnit(n), nn.ELU(), StridedConv(n, 2 * n, rate)]
            n *= 2
        self.layers = nn.ModuleList(layers + [nn.ELU(), CausalConv(n, c["encoder_hidden"], 3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class EncoderTransformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c["encoder_hidden"]
        self.layers = nn.ModuleList(
            TransformerLayer(n, Attention(n, c["encoder_heads"], c["encoder_head_dim"], 0),
                             PlainMlp(n, c["encoder_intermediate"]), nn.LayerNorm) for _ in range(c["encoder_layers"]))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Downsample(nn.Module):
    """Kernel 4, stride 2, the first value repeated on the left."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 4, stride=2, bias=False)

    def forward(self, x):
        batch, time, channels = x.shape
        x = torch.cat((x[:, :1], x[:, :1], x), 1).reshape(batch, time // 2 + 1, 2 * channels)
        weight = self.conv.weight.transpose(1, 2).flatten(1)
        return F.linear(torch.cat((x[:, :-1], x[:, 1:]), 2), weight)


class Encoder(nn.Module):
    """Sound [batch, samples] -> latents [batch, frames, encoder_hidden]."""

    def __init__(self, c):
        super().__init__()
        self.encoder, self.encoder_transformer = ConvEncoder(c), EncoderTransformer(c)
        self.downsample = Downsample(c["encoder_hidden"])

    def forward(self, x):
        return self.downsample(self.encoder_transformer(self.encoder(x[..., None])))


class Codec(nn.Module):
    def __init__(self, c):
        super().__init__()
        from quantizer import Quantizer
        self.shape = c
        self.encoder, self.quantizer, self.decoder = Encoder(c), Quantizer(c), Decoder(c)

    @torch.no_grad()
    def encode(self, sound):
        """Sound [batch, samples] -> codes [batch, frames, codebooks]; whole utterances, in fp32."""
        return self.quantizer(self.encoder(sound))[1]

    @torch.no_grad()
    def decode(self, codes):
        return self.decoder(self.quantizer.dequantise(codes)).clamp(-1, 1)


@torch.no_grad()
def initialise(codec, sound):
    """Weights that neither shrink nor blow up the signal; the library's default leaves most table entries unused."""
    for module in codec.modules():
        if isinstance(module, (nn.Conv1d, nn.Linear)):
            nn.init.normal_(module.weight, std=module.weight[0].numel() ** -.5)
        elif isinstance(module, nn.ConvTranspose1d):
            taps = max(1, module.kernel_size[0] // module.stride[0])
            nn.init.normal_(module.weight, std=(module.weight.shape[0] * taps) ** -.5)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    for module in codec.modules():
        if isinstance(module, ResidualUnit):
            module.conv2.conv.weight.mul_(.4)
        if isinstance(module, EncoderUnit):
            module.block[3].conv.weight.mul_(.5)
    for module in codec.encoder.modules():
        if isinstance(module, (CausalConv, StridedConv)):
            module.conv.weight.mul_(1.25)
    codec.encoder.encoder.layers[0].conv.weight.mul_(1 / sound.std())
    latents = codec.encoder(sound)
    codec.quantizer.scale_inputs(latents)
    codec.quantizer.place_tables(codec.encoder(sound))
    spoken = codec.decoder(codec.quantizer(codec.encoder(sound))[0])
    codec.decoder.decoder[-1].conv.weight.mul_(.5 * sound.std() / spoken.std())
