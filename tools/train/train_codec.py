"""Trains the codec, in two stages, each in pieces.

    python3 train_codec.py joint   --speech speech/slt speech/rms --out run --seconds 480
    python3 train_codec.py decoder --speech speech/slt speech/rms --out run --seconds 480 --begin 0 --end .5

`joint` trains encoder, tables and decoder on random crops. `decoder` freezes the codes, so that a talker can be
trained on them at the same time, and improves the decoder alone on exactly the codes it will be given; a spectrogram
discriminator joins at --adversarial of the way (by default never). State: OUT/codec.pt (weights, below 16 MB) and
OUT/codec_STAGE.json (curve). The optimiser starts afresh with a warm-up in each piece.
"""
import argparse
import os

import torch
import torch.nn.functional as F

import pieces
import shapes
import sound
import spectral
from codec import Codec, initialise
from encode_speech import encode_all
from shapes import FRAME

VALIDATION_CROPS = 24


class Stage:
    """What the two stages share. A subclass gives `forward()` -> (made, real, further loss)."""

    def __init__(self, args, device):
        self.args, self.device = args, device
        self.on_gpu = device != "cpu"
        self.loss = spectral.SpectralLoss().to(device)
        self.judges = spectral.Discriminators().to(device)
        self.codec, self.state = load_or_start(args, device)
        self.samples = args.frames * FRAME
        self.starts = torch.zeros(args.batch, dtype=torch.long, device=device)
        self.shown = {}

    def compiled(self, module):
        return torch.compile(module) if self.on_gpu and self.args.compile else module

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.on_gpu, cache_enabled=False)

    def ready(self, parameters):
        self.parameters = list(parameters)
        self.average = [p.detach().clone() for p in self.parameters]
        self.optimiser = pieces.adam(self.parameters, (.8, .99), 1e-3, self.device)
        self.judge_optimiser = pieces.adam(self.judges.parameters(), (.5, .9), 1e-3, self.device)
        if "judges" in self.state:
            self.judges.load_state_dict({k: v.float() for k, v in self.state["judges"].items()})
        self.plain = pieces.CapturedStep(self.plain_step, [self.optimiser])
        self.adversarial = pieces.CapturedStep(self.adversarial_step, [self.optimiser, self.judge_optimiser])
        # the last offset's gradient is 25 times all others' together: in quiet places the logarithm sees it
        self.clipped = [[p for p in self.parameters if p.numel() == 1], [p for p in self.parameters if p.numel() > 1]]

    def update(self, loss):
        loss.backward()
        for parameters in self.clipped:
            torch.nn.utils.clip_grad_norm_(parameters, 1.)
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.parameters, 1 - self.args.average)

    def with_average(self, action):
        return pieces.with_average(self.parameters, self.average, action)

    def show(self, **values):
        """Keeps values in fixed tensors, to be read after a replay."""
        for name, value in values.items():
            self.shown.setdefault(name, torch.zeros((), device=self.device)).copy_(value.detach())

    def plain_step(self):
        made, real, further = self.forward()
        distance = self.loss(made, real)
        self.show(distance=distance, further=further)
        self.update(distance + further)

    def adversarial_step(self):
        made, real, further = self.forward()
        distance = self.loss(made, real)
        window = min(made.shape[1], 25 * FRAME)
        made_part, real_part = made[:, -window:], real[:, -window:]
        with self.autocast():
            verdict = spectral.hinge_for_judges(self.judges(real_part), self.judges(made_part.detach()))
        verdict.backward()
        torch.nn.utils.clip_grad_norm_(self.judges.parameters(), 5.)
        self.judge_optimiser.step()
        for parameter in self.judges.parameters():
            parameter.requires_grad_(False)
        with self.autocast():
            with torch.no_grad():
                of_real = self.judges(real_part)
            of_made = self.judges(made_part)
        fooled, features = spectral.hinge_for_maker(of_made), spectral.feature_distance(of_real, of_made)
        self.show(distance=distance, verdict=verdict, fooled=fooled, features=features)
        self.update(distance + further + self.args.weight_fooled * fooled + self.args.weight_features * features)
        for parameter in self.judges.parameters():
            parameter.requires_grad_(True)

    def run(self):
        args = self.args
        before = self.state.get("parts", {}).get(args.stage, 0.)
        begin = max(args.begin, before if args.begin <= before < args.end else 0.)
        schedule = pieces.Schedule(begin, args.end, args.seconds * (args.end - begin) / (args.end - args.begin),
                                   args.rate)
        curve = pieces.Curve(os.path.join(args.out, f"codec_{args.stage}.json"))
        first = self.plain if begin < args.adversarial else self.adversarial
        first(self.refill)                                              # compile before the clock starts
        schedule.restart(args.until)
        curve.add(step=0, part=begin, **self.with_average(self.validate))
        next_look, total = args.look, self.state.get("steps", {}).get(args.stage, 0)
        while not schedule.over() and schedule.steps < args.steps:
            rate = schedule.rate()
            pieces.set_rate(self.optimiser, rate)
            pieces.set_rate(self.judge_optimiser, min(3e-4, rate))
            step = self.plain if schedule.part() < args.adversarial else self.adversarial
            step(self.refill)
            if self.on_gpu and schedule.steps % 20 == 0:
                torch.cuda.synchronize()
            if schedule.elapsed() >= next_look:
                next_look += args.look
                curve.add(step=total + schedule.steps, part=schedule.part(), **self.with_average(self.validate),
                          **self.seen())
                self.save(total + schedule.steps, schedule.part())
        curve.add(step=total + schedule.steps, part=schedule.part(), **self.with_average(self.validate), **self.seen())
        self.save(total + schedule.steps, schedule.part())

    def seen(self):
        return {"train_" + k: v.item() for k, v in self.shown.items()}

    def save(self, steps, part):
        """The averaged weights; a run that is started again goes on from them."""
        counts = dict(self.state.get("steps", {}), **{self.args.stage: steps})
        parts = dict(self.state.get("parts", {}), **{self.args.stage: part})
        weights = self.with_average(lambda: {k: v.cpu().clone() for k, v in self.codec.state_dict().items()})
        pieces.save(os.path.join(self.args.out, "codec.pt"), shape=self.codec.shape, steps=counts, parts=parts,
                    codec=weights,
                    judges={k: v.half().cpu() for k, v in self.judges.state_dict().items()})


def load_or_start(args, device):
    """The codec of --out, if there is one, else of --init, else a fresh one."""
    path = os.path.join(args.out, "codec.pt")
    path = path if os.path.exists(path) else args.init
    if not path:
        return Codec(shapes.codec(**shapes.overrides(args.set))).to(device), {}
    state = torch.load(path, map_location=device)
    wanted = dict(state["shape"], **shapes.overrides(args.set))
    codec = Codec(wanted).to(device)
    missing, odd = codec.load_state_dict({k: v.float() for k, v in state["codec"].items()}, strict=False)
    new = range(state["shape"]["layers"], wanted["layers"])
    assert not odd and all(any(f"decoder.pre_transformer.layers.{i}." in k for i in new) for k in missing)
    for i in new:
        quieten(codec.decoder.pre_transformer.layers[i])
    return codec, state


@torch.no_grad()
def quieten(layer):
    """A further layer that at first changes next to nothing."""
    for module in layer.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=module.weight.shape[1] ** -.5)
    layer.self_attn_layer_scale.scale.fill_(.005)
    layer.mlp_layer_scale.scale.fill_(.005)


class Joint(Stage):
    def __init__(self, args, device):
        super().__init__(args, device)
        voices = [sound.Speech(sound.wait_for(f, args.shards), device) for f in args.speech]
        print("hours", [round(v.hours(), 2) for v in voices], flush=True)
        self.track = torch.cat([v.track for v in voices])
        self.validation = self.take_validation([len(v.track) for v in voices])
        self.gain = torch.ones(args.batch, 1, device=device)
        self.probe = spectral.MelProbe(2 * self.codec.shape["width"]).to(device)
        if not self.state:
            self.refill()
            initialise(self.codec, torch.cat([self.crop() for _ in range(3)])[:48])
        self.encode, self.decode = self.compiled(self.codec.encoder), self.compiled(self.codec.decoder)
        self.ready(list(self.codec.parameters()) + list(self.probe.parameters()))

    def take_validation(self, lengths):
        """The last seconds of each voice; random crops stay clear of them by chance of one in a thousand."""
        ends = torch.tensor(lengths).cumsum(0)
        each = VALIDATION_CROPS // len(lengths)
        starts = torch.cat([e - self.samples * torch.arange(1, each + 1) for e in ends]).to(self.device)
        return sound.crops(self.track, starts, self.samples)

    def refill(self):
        self.starts.copy_(torch.randint(0, len(self.track) - self.samples, self.starts.shape, device=self.device))
        if hasattr(self, "gain"):
            self.gain.uniform_(.7, 1.1)

    def crop(self):
        self.refill()
        return sound.crops(self.track, self.starts, self.samples) * self.gain

    def forward(self):
        real = sound.crops(self.track, self.starts, self.samples) * self.gain
        with self.autocast():
            latents = self.encode(real)
        vectors, _, commit = self.codec.quantizer(latents, learn=True, drop=self.args.drop)
        with self.autocast():
            made = self.decode(vectors)
        probe = self.probe(vectors, real)
        self.show(commit=commit, probe=probe)
        return made.float(), real, .25 * commit + self.args.probe * probe

    @torch.no_grad()
    def validate(self):
        vectors, codes, _ = self.codec.quantizer(self.codec.encoder(self.validation))
        made = self.codec.decoder(vectors)
        used = [len(codes[..., book].unique()) for book in range(codes.shape[-1])]
        return dict(validation=self.loss(made, self.validation).item(), used_first=used[0], used_last=used[-1],
                    probe=self.probe(vectors, self.validation).item())


class DecoderOnly(Stage):
    def __init__(self, args, device):
        super().__init__(args, device)
        quantizer = self.codec.quantizer
        self.codec.requires_grad_(False)
        for part in (self.codec.decoder, quantizer.out_first, quantizer.out_rest):
            part.requires_grad_(True)
        blocks, codes = [], []
        for folder in args.speech:
            voice = sound.Speech(sound.wait_for(folder, args.shards), device)
            voice_codes, voice_blocks = encode_all(self.codec, voice, with_sound=True)
            blocks, codes = blocks + [voice_blocks], codes + [voice_codes]
        counts = torch.tensor([len(c) for c in codes], device=device)
        self.edges = counts.cumsum(0)
        self.weights = torch.tensor(args.shares, device=device) if args.shares else counts.float()
        self.blocks, self.codes = torch.cat(blocks), torch.cat(codes)
        print("frames", len(self.codes), "hours", round(len(self.codes) / 45000, 2), flush=True)
        self.within = torch.arange(args.frames, device=device)
        self.skip = args.context * FRAME
        self.slow = spectral.SlowEnvelope().to(device)
        self.validation = self.take_validation()
        self.decode = self.compiled(self.codec.decoder)
        self.ready([p for p in self.codec.parameters() if p.requires_grad])

    def take_validation(self):
        each = VALIDATION_CROPS // len(self.edges)
        within = self.args.frames * torch.arange(1, each + 1, device=self.device)
        starts = torch.cat([e - within for e in self.edges])
        return starts[:, None] + self.within

    def refill(self):
        voice = torch.multinomial(self.weights, len(self.starts), replacement=True)
        end = self.edges[voice] - self.args.frames
        start = torch.where(voice > 0, self.edges[voice - 1], 0)
        self.starts.copy_(start + (torch.rand(voice.shape, device=self.device) * (end - start)).long())

    def forward(self):
        index = self.starts[:, None] + self.within
        real = self.blocks[index].flatten(1).float() / 32768
        vectors = self.codec.quantizer.dequantise(self.codes[index].long())
        with self.autocast():
            made = self.decode(vectors)
        made, real = made[:, self.skip:].float(), real[:, self.skip:]
        further = F.relu(made.abs() - .98).mean() * 2
        if self.args.envelope:
            slow = self.slow(made, real)
            self.show(slow=slow)
            further = further + self.args.envelope * slow
        return made, real, further

    @torch.no_grad()
    def validate(self):
        real = self.blocks[self.validation].flatten(1).float() / 32768
        made = self.codec.decoder(self.codec.quantizer.dequantise(self.codes[self.validation].long()))
        made, real = made[:, self.skip:], real[:, self.skip:]
        return dict(validation=self.loss(made, real).item(), heard=self.loss.heard(made, real).item(),
                    slow=self.slow(made, real).item())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("stage", choices=["joint", "decoder"])
    options.add_argument("--speech", nargs="+", required=True, help="folders made by speech.py, one a voice")
    options.add_argument("--shards", type=int, default=40, help="shards of each voice to wait for and use")
    options.add_argument("--out", required=True)
    options.add_argument("--init", help="a codec.pt to start from, when OUT has none")
    options.add_argument("--seconds", type=float, default=480)
    options.add_argument("--until", type=float, help="end at this time (seconds since 1970) instead")
    options.add_argument("--begin", type=float, default=0.)
    options.add_argument("--end", type=float, default=1.)
    options.add_argument("--steps", type=int, default=10 ** 9)
    options.add_argument("--rate", type=float, default=1e-3)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--frames", type=int, default=64, help="length of a crop")
    options.add_argument("--context", type=int, default=0, help="frames of a crop that only lead in (decoder)")
    options.add_argument("--shares", nargs="*", type=float, help="share of crops from each voice (decoder; default: by"
                         " length)")
    options.add_argument("--envelope", type=float, default=0., help="weight of the slow envelope's distance (decoder)")
    options.add_argument("--average", type=float, default=.999, help="decay of the averaged weights")
    options.add_argument("--drop", type=float, default=.15, help="share of items decoded from fewer codebooks")
    options.add_argument("--probe", type=float, default=.3, help="weight of the mel probe")
    options.add_argument("--adversarial", type=float, default=2., help="part at which the discriminators join")
    options.add_argument("--weight-fooled", type=float, default=.05)
    options.add_argument("--weight-features", type=float, default=.2)
    options.add_argument("--look", type=float, default=20., help="seconds between validations")
    options.add_argument("--compile", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--set", nargs="*", default=[], help="shape overrides, for example decoder_dim=192;"
                         " a codec that is there may only get more decoder layers")
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    device = pieces.prepare_device(args.seed)
    torch.backends.cudnn.benchmark = True
    (Joint if args.stage == "joint" else DecoderOnly)(args, device).run()


if __name__ == "__main__":
    main()
