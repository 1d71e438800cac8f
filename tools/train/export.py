"""Writes the official checkpoint layout from trained states.

    python3 export.py --codec run/codec.pt --talker run/talker.pt --tokenizer run/tokenizer --out voice/builtin

Without --talker only speech_tokenizer/ is written (enough to judge the codec with the official package).
"""
import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

import shapes
from shapes import FRAME, SAMPLE_RATE

TOKENIZER_FILES = ["vocab.json", "merges.txt", "tokenizer_config.json", "preprocessor_config.json"]
HEAD_GAIN = 3.                          # heads are written this much sharper: a temperature of 0.6 then acts as 0.2
# What this voice is understood best with (docs/log/built-in-voice.md). Sounds of speech recur, so that no code is
# punished.
GENERATION = {"do_sample": True, "repetition_penalty": 1.0, "temperature": 0.6, "top_p": 1.0, "top_k": 50,
              "subtalker_dosample": True, "subtalker_temperature": 0.5, "subtalker_top_p": 1.0, "subtalker_top_k": 50,
              "max_new_tokens": 8192}


def decoder_config(c):
    return dict(
        latent_dim=c["latent"], codebook_dim=2 * c["width"], codebook_size=c["entries"], decoder_dim=c["decoder_dim"],
        hidden_size=c["hidden"], intermediate_size=c["intermediate"], num_hidden_layers=c["layers"],
        num_attention_heads=c["heads"], num_key_value_heads=c["heads"], head_dim=c["head_dim"], rms_norm_eps=1e-5,
        rope_theta=10000, sliding_window=c["window"], hidden_act="silu", num_quantizers=c["codebooks"],
        num_semantic_quantizers=1, upsample_rates=c["rates"], upsampling_ratios=c["latent_rates"],
        max_position_embeddings=8000, layer_scale_initial_scale=0.01, attention_bias=False, attention_dropout=0.0,
        semantic_codebook_size=4096, vector_quantization_hidden_dimension=512)


def encoder_config(c):
    n = c["encoder_hidden"]
    return dict(
        _frame_rate=12.5, audio_channels=1, codebook_dim=c["width"], codebook_size=c["entries"], compress=2,
        dilation_growth_rate=2, head_dim=c["encoder_head_dim"], hidden_act="gelu", hidden_size=n,
        intermediate_size=c["encoder_intermediate"], kernel_size=7, last_kernel_size=3, layer_scale_initial_scale=0.01,
        max_position_embeddings=8000, norm_eps=1e-5, normalize=False, num_attention_heads=c["encoder_heads"],
        num_filters=c["filters"], num_hidden_layers=c["encoder_layers"], num_key_value_heads=c["encoder_heads"],
        num_quantizers=c["codebooks"], num_residual_layers=1, num_semantic_quantizers=1, pad_mode="constant",
        residual_kernel_size=3, rope_theta=10000.0, sampling_rate=SAMPLE_RATE, sliding_window=250,
        trim_right_ratio=1.0, upsample_groups=n, upsampling_ratios=c["encoder_rates"], use_cache=False,
        use_causal_conv=True, use_conv_shortcut=False, use_streaming=False,
        vector_quantization_hidden_dimension=c["width"])


def codec_config(c):
    return dict(
        architectures=["Qwen3TTSTokenizerV2Model"], model_type="qwen3_tts_tokenizer_12hz",
        transformers_version="4.57.3",
        encoder_config=encoder_config(c), decoder_config=decoder_config(c), encoder_valid_num_quantizers=c["codebooks"],
        input_sample_rate=SAMPLE_RATE, output_sample_rate=SAMPLE_RATE, decode_upsample_rate=FRAME,
        encode_downsample_rate=FRAME)


def quantizer_tensors(c, state):
    """The tables, once under the decoder's names and once under the encoder's."""
    out, width = {}, c["width"]
    groups = [("rvq_first", "semantic", "first", [0]), ("rvq_rest", "acoustic", "rest", range(1, c["codebooks"]))]
    for decoder_name, encoder_name, own, books in groups:
        decoder = f"decoder.quantizer.{decoder_name}."
        encoder = f"encoder.quantizer.{encoder_name}_residual_vector_quantizer."
        out[decoder + "input_proj.weight"] = torch.zeros(width, 2 * width, 1)              # not used when decoding
        out[decoder + "output_proj.weight"] = state[f"quantizer.out_{own}.weight"][..., None]
        out[encoder + "input_proj.weight"] = state[f"quantizer.in_{own}.weight"][..., None]
        out[encoder + "output_proj.weight"] = torch.zeros(c["encoder_hidden"], width, 1)   # not used when encoding
        for j, book in enumerate(books):
            usage = state["quantizer.usage"][book].clamp(min=1e-5)
            table = state["quantizer.sums"][book] / usage[:, None]
            ones = torch.ones(c["entries"])
            out[f"{decoder}vq.layers.{j}._codebook.cluster_usage"] = ones
            out[f"{decoder}vq.layers.{j}._codebook.embedding_sum"] = table
            out[f"{encoder}layers.{j}.codebook.cluster_usage"] = ones.clone()
            out[f"{encoder}layers.{j}.codebook.embed_sum"] = table.clone()
            out[f"{encoder}layers.{j}.codebook.initialized"] = torch.ones(1)
    return out


def write_json(path, value, **style):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, **style)
        file.write("\n")


def export_codec(path, out):
    state = torch.load(path, map_location="cpu")
    c, weights = state["shape"], {k: v.float() for k, v in state["codec"].items()}
    tensors = {k: v for k, v in weights.items() if not k.startswith("quantizer.")}
    tensors.update(quantizer_tensors(c, weights))
    os.makedirs(out, exist_ok=True)
    save_file({k: v.half().contiguous() for k, v in tensors.items()}, os.path.join(out, "model.safetensors"),
              metadata={"format": "pt"})
    write_json(os.path.join(out, "config.json"), codec_config(c), indent=2)
    write_json(os.path.join(out, "preprocessor_config.json"), dict(
        chunk_length_s=None, feature_extractor_type="EncodecFeatureExtractor", feature_size=1, overlap=None,
        padding_side="right", padding_value=0.0, return_attention_mask=True, sampling_rate=SAMPLE_RATE), indent=2)


def write_sampling_defaults(path):
    """In the form of the released file: no line break at the end."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(GENERATION, indent=2))


def predictor_config(t):
    n = t["predictor_layers"]
    return dict(
        vocab_size=t["entries"], num_code_groups=t["codebooks"], rms_norm_eps=1e-6, rope_theta=1000000,
        rope_scaling=None, max_position_embeddings=65536, hidden_act="silu", attention_bias=False,
        use_sliding_window=False, sliding_window=None, layer_types=["full_attention"] * n,
        hidden_size=t["predictor_hidden"], intermediate_size=t["predictor_intermediate"], num_hidden_layers=n,
        num_attention_heads=t["predictor_heads"], num_key_value_heads=t["predictor_kv_heads"],
        head_dim=t["predictor_head_dim"])


def talker_config(t, ids):
    half = t["head_dim"] // 2
    third = half // 3
    return dict(
        vocab_size=ids["size"], text_vocab_size=t["text_vocabulary"], text_hidden_size=t["text_hidden"],
        num_code_groups=t["codebooks"], hidden_size=t["hidden"], intermediate_size=t["intermediate"],
        num_hidden_layers=t["layers"], num_attention_heads=t["heads"], num_key_value_heads=t["kv_heads"],
        head_dim=t["head_dim"], rms_norm_eps=1e-6, rope_theta=1000000,
        rope_scaling=dict(interleaved=True, mrope_section=[half - 2 * third, third, third], rope_type="default",
                          type="default"),
        max_position_embeddings=32768, attention_bias=False, attention_dropout=0, sliding_window=None,
        use_sliding_window=False, hidden_act="silu", position_id_per_seconds=13, use_cache=True, initializer_range=0.02,
        codec_pad_id=ids["pad"], codec_bos_id=ids["bos"], codec_eos_token_id=ids["eos"], codec_think_id=ids["think"],
        codec_nothink_id=ids["nothink"], codec_think_bos_id=ids["think_bos"], codec_think_eos_id=ids["think_eos"],
        codec_language_id=dict(english=ids["english"]), spk_id=ids["speakers"],
        spk_is_dialect={name: False for name in ids["speakers"]}, code_predictor_config=predictor_config(t))


def sharpened(name, tensor, gains):
    if name == "codec_head.weight":
        return tensor * gains[0]
    return tensor * gains[1] if ".lm_head." in name else tensor


def export_talker(path, tokenizer, out, gains):
    state = torch.load(path, map_location="cpu")
    t, text, ids = state["shape"], state["text"], shapes.control_ids(state["shape"]["entries"])
    write_json(os.path.join(out, "config.json"), dict(
        architectures=["Qwen3TTSForConditionalGeneration"], model_type="qwen3_tts", transformers_version="4.57.3",
        talker_config=talker_config(t, ids), tokenizer_type="qwen3_tts_tokenizer_12hz", tts_model_size="0b6",
        tts_model_type="custom_voice", im_start_token_id=text["im_start"], im_end_token_id=text["im_end"],
        assistant_token_id=text["assistant"], tts_pad_token_id=text["tts_pad"], tts_bos_token_id=text["tts_bos"],
        tts_eos_token_id=text["tts_eos"]), indent=2)
    write_sampling_defaults(os.path.join(out, "generation_config.json"))
    tensors = {"talker." + k: sharpened(k, v.float(), gains).bfloat16().contiguous()
               for k, v in state["talker"].items()}
    save_file(tensors, os.path.join(out, "model.safetensors"), metadata={"format": "pt"})
    for name in TOKENIZER_FILES:
        shutil.copy(os.path.join(tokenizer, name), out)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--codec", required=True)
    options.add_argument("--talker")
    options.add_argument("--tokenizer", help="folder of the tokenizer files")
    options.add_argument("--gains", nargs=2, type=float, default=[HEAD_GAIN, HEAD_GAIN], help="of the two parts' heads")
    options.add_argument("--out", required=True)
    args = options.parse_args()
    export_codec(args.codec, os.path.join(args.out, "speech_tokenizer"))
    if args.talker:
        export_talker(args.talker, args.tokenizer, args.out, args.gains)
    for folder, _, names in sorted(os.walk(args.out)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            os.chmod(path, 0o644)
            print(f"{os.path.getsize(path):>10} {os.path.relpath(path, args.out)}")


if __name__ == "__main__":
    main()
