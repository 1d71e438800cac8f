"""The official package in fp32 on a checkpoint folder, run case by case with everything on the way captured."""
import contextlib
import copy
import io
import logging
import os
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin cost ten times the time on a busy machine
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

with contextlib.redirect_stdout(io.StringIO()):  # the package prints when it is imported
    import numpy as np
    import torch
    import transformers
    from importlib.metadata import version
    from qwen_tts import Qwen3TTSModel, VoiceClonePromptItem
    from qwen_tts.core.tokenizer_12hz import modeling_qwen3_tts_tokenizer_v2 as codec_code

# The library has two ways to fill the same causal mask of zeros and -inf. The one that it takes with this torch costs
# two thirds of a frame's time here: it asks a Python function about each element, traced, at every pass.
transformers.masking_utils.sdpa_mask = transformers.masking_utils.sdpa_mask_older_torch


def made_with():
    versions = f"qwen-tts {version('qwen-tts')}, transformers {transformers.__version__}, torch {torch.__version__}"
    return f"{versions}, float32, eager"


def rows(tensor):
    """[1, n, width] -> [n, width] as float32."""
    return tensor.detach().squeeze(0).to(torch.float32).numpy().copy()


class Official:
    """One checkpoint. speak() and decode() return dicts of arrays, named as in tests/golden/README.md."""

    def __init__(self, folder, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.model = Qwen3TTSModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        inner = self.model.model
        self.talker, self.predictor = inner.talker, inner.talker.code_predictor
        self.decoder = inner.speech_tokenizer.model.decoder
        self.codec = inner.speech_tokenizer
        self.kind, self.size = inner.tts_model_type, inner.tts_model_size
        self.config = inner.config

    def speak(self, case, activations=False, voice=None):
        """Text to codes and samples, greedy. `case` has the keys of a case object; `voice` is (x_vector, codes or None)
        for a base model."""
        seen = Recorder(self, activations)
        settings = dict(do_sample=False, subtalker_dosample=False, repetition_penalty=case["repetition_penalty"],
                        max_new_tokens=case["max_frames"] + 1, non_streaming_mode=case["layout"] == "full")
        language = None if case["language"] == "auto" else case["language"]
        with seen.installed():
            if self.kind == "custom_voice":
                sound, _ = self.model.generate_custom_voice(case["text"], speaker=case["speaker"] or "",
                                                            language=language, instruct=case["instruct"], **settings)
            elif self.kind == "voice_design":
                sound, _ = self.model.generate_voice_design(case["text"], instruct=case["instruct"] or "",
                                                            language=language, **settings)
            else:
                item = self.clone(voice, case["reference"]["transcript"])
                sound, _ = self.model.generate_voice_clone(case["text"], language=language, voice_clone_prompt=[item],
                                                           **settings)
        return seen.arrays(), np.asarray(sound[0], dtype=np.float32)

    @staticmethod
    def clone(voice, transcript):
        vector, codes = voice
        codes = None if codes is None else torch.from_numpy(codes.astype(np.int64))
        return VoiceClonePromptItem(ref_code=codes, ref_spk_embedding=torch.from_numpy(vector), ref_text=transcript,
                                    x_vector_only_mode=codes is None, icl_mode=codes is not None)

    def decode(self, codes, stages=False):
        """Codes [F, K] to samples by the official rule: chunks of 300 frames with 25 of context."""
        seen = Recorder(self, False)
        with torch.inference_mode(), seen.stages_installed() if stages else contextlib.nullcontext():
            sound, _ = self.codec.decode([{"audio_codes": torch.from_numpy(codes.astype(np.int64))}])
        return seen.kept, np.asarray(sound[0], dtype=np.float32)

    def decode_whole(self, codes):
        """The same in one piece, however long."""
        with torch.inference_mode():
            return self.decoder(torch.from_numpy(codes.astype(np.int64)).T[None])[0, 0].numpy().astype(np.float32)

    def decode_fp64(self, codes):
        """The same in fp64: what the weights say, next to which the rounding of any fp32 decoder can be measured."""
        decoder = copy.deepcopy(self.decoder).double()
        with torch.inference_mode(), doubles(codec_code):
            return decoder(torch.from_numpy(codes.astype(np.int64)).T[None])[0, 0].numpy()


class Recorder:
    """Wraps and hooks for one run; kept[] is what came by."""

    def __init__(self, official, activations):
        self.official, self.activations = official, activations
        self.kept, self.tokenized, self.predicted = {}, [], []
        self.talked, self.codes, self.hidden = None, None, []

    @contextlib.contextmanager
    def installed(self):
        o, model = self.official, self.official.model
        undo = [wrap(model, "_tokenize_texts", self.on_tokenize), wrap(model.model, "generate", self.on_generate),
                wrap(o.talker, "generate", self.on_talk), wrap(o.predictor, "generate", self.on_predict)]
        if self.activations:
            undo += [hook(o.talker.model, self.on_talker_state)]
            undo += [hook(layer, self.first_pass(f"talker.layer.{i}")) for i, layer in enumerate(o.talker.model.layers)]
            undo += [hook(layer, self.first_frame(f"predictor.layer.{i}"))
                     for i, layer in enumerate(o.predictor.model.layers)]
        try:
            yield
        finally:
            for step in undo:
                step()

    @contextlib.contextmanager
    def stages_installed(self):
        d = self.official.decoder
        keep = lambda name: lambda out: self.kept.__setitem__(f"vocoder.{name}", rows(out))
        undo = [wrap(d.quantizer, "decode", lambda call, *a, **k: self.pass_on(keep("rvq"), call(*a, **k))),
                hook(d.pre_conv, keep("pre_conv")),
                hook(d.pre_transformer, lambda out: keep("transformer")(out.last_hidden_state.transpose(1, 2)))]
        undo += [hook(blocks[-1], keep(f"upsample.{i}")) for i, blocks in enumerate(d.upsample)]
        undo += [hook(block, keep(f"decoder.{i}")) for i, block in enumerate(d.decoder[:-1])]
        try:
            yield
        finally:
            for step in undo:
                step()

    @staticmethod
    def pass_on(see, value):
        see(value)
        return value

    # What is called on the way; `call` is the original.

    def on_tokenize(self, call, texts):
        ids = call(texts)
        self.tokenized += [i[0].numpy().astype(np.int32) for i in ids]
        return ids

    def on_generate(self, call, *args, **kwargs):
        result = call(*args, **kwargs)
        self.codes = result[0][0].numpy().astype(np.int32)
        return result

    def on_talk(self, call, *args, **kwargs):
        if self.activations:
            self.kept["prompt"] = rows(kwargs["inputs_embeds"])
            self.kept["trailing"] = rows(kwargs["trailing_text_hidden"])
        self.talked = call(*args, output_scores=True, output_logits=True, **kwargs)
        return self.talked

    def on_predict(self, call, *args, **kwargs):
        result = call(*args, output_scores=True, output_logits=True, **kwargs)
        self.predicted.append((torch.cat(result.scores), torch.cat(result.logits)))
        return result

    def on_talker_state(self, out):
        self.hidden.append(rows(out.last_hidden_state[:, -1:]))

    def first_pass(self, name):
        def see(out):
            self.kept.setdefault(name, rows(out[0]))
        return see

    def first_frame(self, name):
        """The predictor sees two positions, then one at a time; K in all for a frame."""
        def see(out):
            have = self.kept.get(name, np.zeros((0, out[0].shape[-1]), np.float32))
            if len(have) < self.official.config.talker_config.num_code_groups:
                self.kept[name] = np.concatenate([have, rows(out[0])])
        return see

    def arrays(self):
        n_frames = len(self.codes)
        scores = torch.cat(self.talked.scores)[:n_frames]
        margins = [margin(scores)[:, None], np.stack([margin(s) for s, _ in self.predicted[:n_frames]])]
        out = dict(self.kept, codes=self.codes, ids=self.tokenized[0], margins=np.concatenate(margins, axis=1))
        if len(self.tokenized) > 1:
            out["reference_ids" if self.official.kind == "base" else "instruct_ids"] = self.tokenized[1]
        if self.activations:
            out["hidden"] = np.concatenate(self.hidden)[:n_frames]
            out["logits"] = torch.cat(self.talked.logits)[:n_frames].numpy()
            out["sub_logits"] = torch.stack([logits for _, logits in self.predicted[:n_frames]]).numpy()
        return out


def margin(scores):
    """Best minus second best of each row; 1e30 where there is no second."""
    best = scores.to(torch.float32).topk(2).values
    return torch.nan_to_num(best[:, 0] - best[:, 1], nan=0.0, posinf=1e30).clamp(max=1e30).numpy()


def wrap(owner, name, replacement):
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: replacement(original, *args, **kwargs))
    return lambda: delattr(owner, name)


def hook(module, see):
    return module.register_forward_hook(lambda _module, _inputs, out: see(out)).remove


@contextlib.contextmanager
def doubles(module):
    """Norms and softmaxes of the package go through float32 whatever comes in; here they go through float64. (The
    angles of the rotary positions stay as they are, a table of the model.)"""
    class Doubles:
        float32 = torch.float64

        def __getattr__(self, name):
            return getattr(torch, name)

    module.torch = Doubles()
    try:
        yield
    finally:
        module.torch = torch


def progress(text):
    print(text, file=sys.stderr, flush=True)
