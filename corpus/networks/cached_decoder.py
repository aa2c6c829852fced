"""Decoders of transformers as functions of tensors only."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache


class PlainDecoder(torch.nn.Module):
    """A decoder that reads a whole text."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class CachedDecoder(torch.nn.Module):
    """A decoder that reads one more token, with cached keys and values of earlier tokens."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, *past: Any) -> Any:
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
        )
        present = [tensor for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values)]
        return (result.logits, *present)
