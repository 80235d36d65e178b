"""Shapes of forward passes for which a row's result does not depend, to the last bit, on what is computed beside it.

Matrix products on a CPU take other kernels for one, two or three rows than for more, and cut long sums where it suits
their length. Which outputs are decoded side by side depends on timing, so without this the last bits of a
log-probability would too, and now and then the token that is sampled. Measured (torch 2.13, MKL, fp32, one thread):
products of 4 to 4,096 rows are equal bit by bit; so is attention of one query over keys padded to a multiple of 16, and
of 4 or more queries over keys padded to a multiple of 512, the block in which torch's kernel takes them.
"""

from __future__ import annotations

FEWEST_ROWS = 4
DECODE_WIDTH, PREFILL_WIDTH = 16, 512


def padded(count: int, multiple: int) -> int:
    """The smallest multiple that holds `count`."""
    return -(-count // multiple) * multiple
