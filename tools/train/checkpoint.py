"""Reads a checkpoint in the official layout back into the training modules (the reverse of export.py)."""
import json
import os

import torch
from safetensors.torch import load_file

from codec import Codec
from talker import Talker
from tokenizer import Tokenizer


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def codec_shape(config):
    d, e = config["decoder_config"], config["encoder_config"]
    return dict(
        codebooks=d["num_quantizers"], entries=d["codebook_size"], width=d["codebook_dim"] // 2, latent=d["latent_dim"],
        hidden=d["hidden_size"], intermediate=d["intermediate_size"], layers=d["num_hidden_layers"],
        heads=d["num_attention_heads"], head_dim=d["head_dim"], window=d["sliding_window"],
        decoder_dim=d["decoder_dim"], rates=d["upsample_rates"], latent_rates=d["upsampling_ratios"],
        filters=e["num_filters"], encoder_hidden=e["hidden_size"], encoder_intermediate=e["intermediate_size"],
        encoder_layers=e["num_hidden_layers"], encoder_heads=e["num_attention_heads"], encoder_head_dim=e["head_dim"],
        encoder_rates=e["upsampling_ratios"])


def load_codec(folder, device="cpu"):
    shape = codec_shape(read_json(folder, "config.json"))
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    codec = Codec(shape)
    state = {k: tensors[k] if k in tensors else v for k, v in codec.state_dict().items()}
    for own, decoder, encoder in (("first", "first", "semantic"), ("rest", "rest", "acoustic")):
        state[f"quantizer.out_{own}.weight"] = tensors[f"decoder.quantizer.rvq_{decoder}.output_proj.weight"][..., 0]
        state[f"quantizer.in_{own}.weight"] = \
            tensors[f"encoder.quantizer.{encoder}_residual_vector_quantizer.input_proj.weight"][..., 0]
    for book in range(shape["codebooks"]):
        layer = f"rvq_{'rest' if book else 'first'}.vq.layers.{max(0, book - 1)}._codebook."
        state["quantizer.sums"][book] = tensors[f"decoder.quantizer.{layer}embedding_sum"]
        state["quantizer.usage"][book] = tensors[f"decoder.quantizer.{layer}cluster_usage"]
    codec.load_state_dict(state)
    return codec.to(device).eval()


def talker_shape(t):
    p = t["code_predictor_config"]
    return dict(
        codebooks=t["num_code_groups"], entries=p["vocab_size"], hidden=t["hidden_size"],
        intermediate=t["intermediate_size"], layers=t["num_hidden_layers"], heads=t["num_attention_heads"],
        kv_heads=t["num_key_value_heads"], head_dim=t["head_dim"], text_hidden=t["text_hidden_size"],
        text_vocabulary=t["text_vocab_size"], predictor_hidden=p["hidden_size"],
        predictor_intermediate=p["intermediate_size"], predictor_layers=p["num_hidden_layers"],
        predictor_heads=p["num_attention_heads"], predictor_kv_heads=p["num_key_value_heads"],
        predictor_head_dim=p["head_dim"])


class Voice:
    """A whole checkpoint: talker, codec, tokenizer, ids and sampling defaults."""

    def __init__(self, folder, device="cpu"):
        config = read_json(folder, "config.json")["talker_config"]
        self.sampling = read_json(folder, "generation_config.json")
        self.ids = dict(pad=config["codec_pad_id"], bos=config["codec_bos_id"], eos=config["codec_eos_token_id"],
                        think=config["codec_think_id"], nothink=config["codec_nothink_id"],
                        think_bos=config["codec_think_bos_id"], think_eos=config["codec_think_eos_id"],
                        english=config["codec_language_id"]["english"], speakers=config["spk_id"],
                        size=config["vocab_size"])
        self.talker = Talker(talker_shape(config), config["vocab_size"], 0.)
        tensors = load_file(os.path.join(folder, "model.safetensors"))
        self.talker.load_state_dict({k[len("talker."):]: v.float() for k, v in tensors.items()})
        self.talker.to(device).eval()
        self.codec = load_codec(os.path.join(folder, "speech_tokenizer"), device)
        self.tokenizer, self.device = Tokenizer(folder), device
