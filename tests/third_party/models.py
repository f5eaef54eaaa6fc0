"""Tiny random models of Hugging Face transformers: architecture -> how to make one, and inputs for it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

Inputs = dict[str, Any]
FLOAT32 = {"gemma2", "mixtral", "olmoe", "qwen2_moe", "t5", "xglm"}
"""Models that compute parts in single precision whatever their weights are: compared in it."""
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}


def _hf(name: str) -> Any:
    """A class of transformers, which is imported only when it is used."""
    return getattr(importlib.import_module("transformers"), name)


def _ids(seed: int, batch: int = 2, length: int = 7) -> torch.Tensor:
    return torch.randint(3, 99, (batch, length), generator=torch.Generator().manual_seed(seed))


def text(seed: int = 0) -> Inputs:
    return {"input_ids": _ids(seed)}


def masked(seed: int = 0) -> Inputs:
    """With padding at the end of the second row."""
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return {"input_ids": _ids(seed), "attention_mask": mask}


def labelled(seed: int = 0) -> Inputs:
    return {**masked(seed), "labels": _ids(seed + 100)}


def pair(seed: int = 0) -> Inputs:
    return {**masked(seed), "decoder_input_ids": _ids(seed + 50, length=5)}


def image(seed: int = 0, size: int = 16) -> Inputs:
    return {"pixel_values": torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(seed))}


def _series(seed: int = 0) -> Inputs:
    return {"past_values": torch.randn(2, 16, 2, generator=torch.Generator().manual_seed(seed))}


def _speech(seed: int = 0) -> Inputs:
    generator = torch.Generator().manual_seed(seed)
    return {"input_features": torch.randn(2, 8, 40, generator=generator), "decoder_input_ids": _ids(seed, length=5)}


def _sound(seed: int = 0) -> Inputs:
    return {"input_values": torch.randn(2, 400, generator=torch.Generator().manual_seed(seed))}


def _both(seed: int = 0) -> Inputs:
    return {**masked(seed), **image(seed)}


def _without(config: Inputs, *names: str) -> Inputs:
    return {name: value for name, value in config.items() if name not in names}


def _seq2seq(name: str) -> Callable[[], Any]:
    def make() -> Any:
        config = _hf(f"{name}Config")(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2,
        )  # fmt: skip
        return _hf(f"{name}ForConditionalGeneration" if name != "Marian" else "MarianMTModel")(config)

    return make


def _whisper() -> Any:
    return _hf("WhisperForConditionalGeneration")(_hf("WhisperConfig")(
        vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_source_positions=20,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2,
    ))  # fmt: skip


def _clip() -> Any:
    tower = {**_without(SMALL, "vocab_size", "max_position_embeddings"), "projection_dim": 16}
    return _hf("CLIPModel")(_hf("CLIPConfig")(
        text_config={**tower, "vocab_size": 99, "max_position_embeddings": 64},
        vision_config={**tower, "image_size": 16, "patch_size": 4}, projection_dim=16,
    ))  # fmt: skip


def _wav2vec2() -> Any:
    return _hf("Wav2Vec2Model")(_hf("Wav2Vec2Config")(
        **SMALL, conv_dim=(8, 8), conv_stride=(4, 2), conv_kernel=(8, 4), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, layerdrop=0.0, mask_time_prob=0.0, num_feat_extract_layers=2,
    ))  # fmt: skip


def _tiny(model: str, config: str, /, **options: Any) -> Callable[[], Any]:
    return lambda: _hf(model)(_hf(config)(**options))


_VISION = {**_without(SMALL, "vocab_size", "max_position_embeddings", "pad_token_id", "bos_token_id", "eos_token_id"),
           "image_size": 16, "patch_size": 4}  # fmt: skip
_GPT = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1,
        "eos_token_id": 2}  # fmt: skip
_T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4, "pad_token_id": 0,
       "eos_token_id": 2, "decoder_start_token_id": 0}  # fmt: skip
_XLM = {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}

MODELS: dict[str, tuple[Callable[[], Any], Callable[..., Inputs]]] = {
    "albert": (_tiny("AlbertForMaskedLM", "AlbertConfig", **SMALL, embedding_size=16), labelled),
    "bart": (_seq2seq("Bart"), pair),
    "beit": (_tiny("BeitModel", "BeitConfig", **_VISION), image),
    "bert": (_tiny("BertForMaskedLM", "BertConfig", **SMALL), labelled),
    "blenderbot": (_seq2seq("Blenderbot"), pair),
    "bloom": (_tiny("BloomForCausalLM", "BloomConfig", **_without(SMALL, "max_position_embeddings")), labelled),
    "camembert": (_tiny("CamembertForMaskedLM", "CamembertConfig", **SMALL), labelled),
    "clip": (_clip, _both),
    "codegen": (_tiny("CodeGenForCausalLM", "CodeGenConfig", **_GPT, rotary_dim=4), labelled),
    "cohere": (_tiny("CohereForCausalLM", "CohereConfig", **_without(GROUPED, "head_dim")), labelled),
    "convbert": (_tiny("ConvBertForMaskedLM", "ConvBertConfig", **SMALL, embedding_size=16, head_ratio=2,
                       conv_kernel_size=3), labelled),
    "convnext": (_tiny("ConvNextModel", "ConvNextConfig", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2), image),
    "data2vec_text": (_tiny("Data2VecTextForMaskedLM", "Data2VecTextConfig", **SMALL), labelled),
    "deberta": (_tiny("DebertaForMaskedLM", "DebertaConfig", **SMALL, relative_attention=True,
                      pos_att_type=["p2c", "c2p"]), masked),
    "deberta_v2": (_tiny("DebertaV2ForMaskedLM", "DebertaV2Config", **SMALL, relative_attention=True,
                         pos_att_type=["p2c", "c2p"], position_buckets=8), masked),
    "deit": (_tiny("DeiTModel", "DeiTConfig", **_VISION), image),
    "dinov2": (_tiny("Dinov2Model", "Dinov2Config", **_VISION), image),
    "distilbert": (_tiny("DistilBertForMaskedLM", "DistilBertConfig", vocab_size=99, dim=32, n_layers=2, n_heads=4,
                         hidden_dim=37, max_position_embeddings=64), labelled),
    "electra": (_tiny("ElectraForMaskedLM", "ElectraConfig", **SMALL, embedding_size=16), labelled),
    "ernie": (_tiny("ErnieForMaskedLM", "ErnieConfig", **SMALL), masked),
    "falcon": (_tiny("FalconForCausalLM", "FalconConfig", **_without(SMALL, "intermediate_size")), labelled),
    "flaubert": (_tiny("FlaubertModel", "FlaubertConfig", **_XLM), masked),
    "fnet": (_tiny("FNetForMaskedLM", "FNetConfig", vocab_size=99, hidden_size=32, num_hidden_layers=2,
                   intermediate_size=48, max_position_embeddings=64), text),
    "funnel": (_tiny("FunnelForMaskedLM", "FunnelConfig", vocab_size=99, d_model=32, n_head=4, d_head=8, d_inner=37,
                     block_sizes=[1, 1], num_decoder_layers=1), masked),
    "gemma": (_tiny("GemmaForCausalLM", "GemmaConfig", **GROUPED), labelled),
    "gemma2": (_tiny("Gemma2ForCausalLM", "Gemma2Config", **GROUPED, sliding_window=4), labelled),
    "gemma3": (_tiny("Gemma3ForCausalLM", "Gemma3TextConfig", **GROUPED, sliding_window=4), labelled),
    "glm": (_tiny("GlmForCausalLM", "GlmConfig", **GROUPED), labelled),
    "gpt2": (_tiny("GPT2LMHeadModel", "GPT2Config", **_GPT), labelled),
    "gpt_bigcode": (_tiny("GPTBigCodeForCausalLM", "GPTBigCodeConfig", **_GPT), labelled),
    "gpt_neo": (_tiny("GPTNeoForCausalLM", "GPTNeoConfig", vocab_size=99, hidden_size=32, num_layers=2, num_heads=4,
                      intermediate_size=37, attention_types=[[["global", "local"], 1]], window_size=4,
                      max_position_embeddings=64, bos_token_id=1, eos_token_id=2), labelled),
    "gpt_neox": (_tiny("GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL), labelled),
    "gptj": (_tiny("GPTJForCausalLM", "GPTJConfig", **_GPT, rotary_dim=4), labelled),
    "granite": (_tiny("GraniteForCausalLM", "GraniteConfig", **_without(GROUPED, "head_dim")), labelled),
    "hubert": (_tiny("HubertModel", "HubertConfig", **SMALL, conv_dim=(8, 8), conv_stride=(4, 2), conv_kernel=(8, 4),
                     num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, layerdrop=0.0, mask_time_prob=0.0,
                     num_feat_extract_layers=2), _sound),
    "ibert": (_tiny("IBertForMaskedLM", "IBertConfig", **SMALL), masked),
    "layoutlm": (_tiny("LayoutLMModel", "LayoutLMConfig", **SMALL), masked),
    "llama": (_tiny("LlamaForCausalLM", "LlamaConfig", **GROUPED), labelled),
    "m2m100": (_seq2seq("M2M100"), pair),
    "mamba": (_tiny("MambaForCausalLM", "MambaConfig", vocab_size=99, hidden_size=32, num_hidden_layers=2,
                    state_size=4), text),
    "mamba2": (_tiny("Mamba2ForCausalLM", "Mamba2Config", vocab_size=99, hidden_size=32, num_hidden_layers=2,
                     state_size=4, num_heads=4, head_dim=16, n_groups=1, chunk_size=4), text),
    "marian": (_seq2seq("Marian"), pair),
    "mbart": (_seq2seq("MBart"), pair),
    "megatron_bert": (_tiny("MegatronBertForMaskedLM", "MegatronBertConfig", **SMALL), labelled),
    "mistral": (_tiny("MistralForCausalLM", "MistralConfig", **GROUPED, sliding_window=4), labelled),
    "mixtral": (_tiny("MixtralForCausalLM", "MixtralConfig", **GROUPED, num_local_experts=4, num_experts_per_tok=2,
                      experts_implementation="eager"),
                labelled),
    "mobilebert": (_tiny("MobileBertForMaskedLM", "MobileBertConfig", **SMALL, embedding_size=32,
                         intra_bottleneck_size=32), labelled),
    "mobilevit": (_tiny("MobileViTModel", "MobileViTConfig", image_size=32, patch_size=2, hidden_sizes=[8, 8, 8],
                        neck_hidden_sizes=[4, 8, 8, 8, 8, 8, 8]), lambda seed=0: image(seed, 32)),
    "mpnet": (_tiny("MPNetForMaskedLM", "MPNetConfig", **SMALL), masked),
    "mpt": (_tiny("MptForCausalLM", "MptConfig", vocab_size=99, d_model=32, n_layers=2, n_heads=4, max_seq_len=64),
            labelled),
    "mt5": (_tiny("MT5ForConditionalGeneration", "MT5Config", **_T5), pair),
    "nemotron": (_tiny("NemotronForCausalLM", "NemotronConfig", **_without(GROUPED, "head_dim")), labelled),
    "olmo": (_tiny("OlmoForCausalLM", "OlmoConfig", **_without(GROUPED, "head_dim")), labelled),
    "olmo2": (_tiny("Olmo2ForCausalLM", "Olmo2Config", **_without(GROUPED, "head_dim")), labelled),
    "olmoe": (_tiny("OlmoeForCausalLM", "OlmoeConfig", **_without(GROUPED, "head_dim"), num_experts=4,
                    num_experts_per_tok=2, experts_implementation="eager"), masked),
    "opt": (_tiny("OPTForCausalLM", "OPTConfig", **_without(SMALL, "intermediate_size"), ffn_dim=37,
                  word_embed_proj_dim=32), labelled),
    "patchtst": (_tiny("PatchTSTModel", "PatchTSTConfig", num_input_channels=2, context_length=16, patch_length=4,
                       patch_stride=4, d_model=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=16), _series),
    "pegasus": (_seq2seq("Pegasus"), pair),
    "persimmon": (_tiny("PersimmonForCausalLM", "PersimmonConfig", **SMALL), labelled),
    "phi": (_tiny("PhiForCausalLM", "PhiConfig", **_without(GROUPED, "head_dim")), labelled),
    "phi3": (_tiny("Phi3ForCausalLM", "Phi3Config", **_without(GROUPED, "head_dim")), labelled),
    "plbart": (_seq2seq("PLBart"), pair),
    "poolformer": (_tiny("PoolFormerModel", "PoolFormerConfig", hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1]),
                   lambda seed=0: image(seed, 64)),
    "qwen2": (_tiny("Qwen2ForCausalLM", "Qwen2Config", **_without(GROUPED, "head_dim")), labelled),
    "qwen2_moe": (_tiny("Qwen2MoeForCausalLM", "Qwen2MoeConfig", **_without(GROUPED, "head_dim"), **EXPERTS,
                        shared_expert_intermediate_size=16, num_experts=4,
                        experts_implementation="eager"), masked),
    "qwen3": (_tiny("Qwen3ForCausalLM", "Qwen3Config", **GROUPED), labelled),
    "regnet": (_tiny("RegNetModel", "RegNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
                     groups_width=8), image),
    "rembert": (_tiny("RemBertForMaskedLM", "RemBertConfig", **SMALL, input_embedding_size=16,
                      output_embedding_size=16), masked),
    "resnet": (_tiny("ResNetModel", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]), image),
    "roberta": (_tiny("RobertaForMaskedLM", "RobertaConfig", **SMALL), labelled),
    "roformer": (_tiny("RoFormerForMaskedLM", "RoFormerConfig", **SMALL, embedding_size=32), labelled),
    "segformer": (_tiny("SegformerModel", "SegformerConfig", hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1],
                        num_attention_heads=[1, 2, 2, 2], sr_ratios=[2, 1, 1, 1]), image),
    "siglip_vision": (_tiny("SiglipVisionModel", "SiglipVisionConfig", **_VISION), image),
    "smollm3": (_tiny("SmolLM3ForCausalLM", "SmolLM3Config", **_without(GROUPED, "head_dim")), labelled),
    "squeezebert": (_tiny("SqueezeBertForMaskedLM", "SqueezeBertConfig", **SMALL, embedding_size=32), labelled),
    "stablelm": (_tiny("StableLmForCausalLM", "StableLmConfig", **_without(GROUPED, "head_dim")), labelled),
    "starcoder2": (_tiny("Starcoder2ForCausalLM", "Starcoder2Config", **_without(GROUPED, "head_dim")), labelled),
    "swin": (_tiny("SwinModel", "SwinConfig", image_size=16, patch_size=2, embed_dim=8, depths=[1, 1],
                   num_heads=[2, 2], window_size=2), image),
    "t5": (_tiny("T5ForConditionalGeneration", "T5Config", **_T5), pair),
    "vit": (_tiny("ViTModel", "ViTConfig", **_VISION), image),
    "vit_mae": (_tiny("ViTMAEModel", "ViTMAEConfig", **_VISION), image),
    "wav2vec2": (_wav2vec2, _sound),
    "whisper": (_whisper, _speech),
    "xglm": (_tiny("XGLMForCausalLM", "XGLMConfig", vocab_size=99, d_model=32, num_layers=2, attention_heads=4,
                   ffn_dim=37, max_position_embeddings=64), masked),
    "xlm": (_tiny("XLMModel", "XLMConfig", **_XLM), masked),
    "xlm_roberta": (_tiny("XLMRobertaForMaskedLM", "XLMRobertaConfig", **SMALL), labelled),
    "xlnet": (_tiny("XLNetLMHeadModel", "XLNetConfig", vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=37),
              masked),
}

KINDS = {
    "encoders": ("albert", "bert", "camembert", "convbert", "data2vec_text", "deberta", "deberta_v2", "distilbert",
                 "electra", "ernie", "flaubert", "fnet", "funnel", "ibert", "layoutlm", "megatron_bert", "mobilebert",
                 "mpnet", "rembert", "roberta", "roformer", "squeezebert", "xlm", "xlm_roberta", "xlnet"),
    "decoders": ("bloom", "codegen", "cohere", "falcon", "gemma", "gemma2", "gemma3", "glm", "gpt2", "gpt_bigcode",
                 "gpt_neo", "gpt_neox", "gptj", "granite", "llama", "mistral", "mpt", "nemotron", "olmo", "olmo2",
                 "opt", "persimmon", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm", "starcoder2", "xglm"),
    "mixture of experts, routed by data": ("mixtral", "olmoe", "qwen2_moe"),
    "state space": ("mamba", "mamba2"),
    "encoder and decoder": ("bart", "blenderbot", "m2m100", "marian", "mbart", "mt5", "pegasus", "plbart", "t5"),
    "images, sound, series, both": ("beit", "clip", "convnext", "deit", "dinov2", "hubert", "mobilevit", "patchtst",
                            "poolformer", "regnet", "resnet", "segformer", "siglip_vision", "swin", "vit", "vit_mae",
                            "wav2vec2", "whisper"),
}  # fmt: skip
"""What the models are."""

REFUSED: dict[str, tuple[Callable[[], Any], Callable[..., Inputs], str, str]] = {
    "longformer": (_tiny("LongformerModel", "LongformerConfig", **SMALL, attention_window=4), masked, "D2S231",
                   "the length of a slice depends on a maximum over data"),
    "led": (_tiny("LEDForConditionalGeneration", "LEDConfig", vocab_size=99, d_model=32, encoder_layers=2,
                  decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37,
                  decoder_ffn_dim=37, attention_window=4), pair, "D2S231",
            "the length of a slice depends on a maximum over data"),
}
"""Models that are not captured, with the code of the located error and its reason."""

LENGTHS = ("albert", "bart", "bert", "bloom", "distilbert", "electra", "falcon", "gemma", "gpt2", "gpt_neox", "granite",
           "llama", "marian", "mistral", "opt", "pegasus", "phi", "qwen2", "roberta", "whisper")  # fmt: skip
"""Models that are run with several lengths and batch sizes, with and without a mask, by one converted model."""
