"""A preallocated key-value cache with one row a running output, in the shape that transformers models ask for."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin


class _SlotLayer(CacheLayerMixin):
    """Keys and values of one layer: (rows, kv heads, positions, head dim)."""

    is_sliding = False

    def __init__(self, rows: int, heads: int, length: int, dim: int) -> None:
        super().__init__()
        self.keys = torch.zeros(rows, heads, length, dim)
        self.values = torch.zeros(rows, heads, length, dim)
        self.is_initialized = True
        self.rows = slice(0, 0)
        self.positions = self.valid = torch.empty(0)
        self.width = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the rows exist from the start."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store (B, kv heads, Q, head dim) where the plan says; return each row's first `width` positions."""
        assert self.keys is not None and self.values is not None
        row, query = self.valid.nonzero(as_tuple=True)
        at = self.positions[row, query]
        self.keys[row + self.rows.start, :, at] = key_states[row, :, query]
        self.values[row + self.rows.start, :, at] = value_states[row, :, query]
        return self.keys[self.rows, :, : self.width], self.values[self.rows, :, : self.width]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys seen and their offset."""
        return self.width, 0

    def get_seq_length(self) -> int:
        """Not used: positions are always given."""
        return 0

    def get_max_cache_shape(self) -> int:
        """Positions a row can hold."""
        assert self.keys is not None
        return self.keys.shape[2]


class SlotCache(Cache):
    """All layers. `plan` says where the next forward pass writes and what it sees."""

    def __init__(self, config: Any, rows: int, length: int) -> None:
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads = config.num_key_value_heads
        self._slots = [_SlotLayer(rows, heads, length, dim) for _ in range(config.num_hidden_layers)]
        super().__init__(layers=list(self._slots))

    def plan(self, rows: slice, positions: torch.Tensor, valid: torch.Tensor, width: int) -> None:
        """`positions` and `valid` are (B, Q): where each new token goes, and which are tokens rather than padding."""
        for layer in self._slots:
            layer.rows, layer.positions, layer.valid, layer.width = rows, positions, valid, width

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Copy one row's first `length` positions over another row."""
        for layer in self._slots:
            assert layer.keys is not None and layer.values is not None
            layer.keys[target, :, :length] = layer.keys[source, :, :length]
            layer.values[target, :, :length] = layer.values[source, :, :length]
