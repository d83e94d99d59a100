"""What the paper's cells would take on an NVIDIA L40S at its peak: arithmetic, not a measurement.

    python benchmarks/on_paper.py            prints the table
    python benchmarks/on_paper.py --quick    with steps counted on 500 rows instead of 2000

Steps are counted in fits of this library with `solver="spectral"` on `COUNTED` rows; how they grow with the number of
rows is not modelled. Flops and bytes follow from the number of rows n and of features p:

    kernel matrix           n²(3p + 30) flops in float64, since distances are sums of squared differences
    eigendecomposition      9n³ flops in float32
    a step of m columns     2 products with U: 4n²m flops in float32, 8n² bytes
    one step of 13 besides  2 products with U and one with K: 6n²m flops in float64, 14n² bytes
    certificates            2n²m flops in float64 for m models, 6n² bytes for a block of them
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from kernelpath import KernelLogistic, KernelSVC
from kernelpath.datasets import make_mixture

# Peaks of an NVIDIA L40S, from its data sheet: flops a second in float32 and in float64 (1/64 of it), bytes a second.
SINGLE, DOUBLE, BANDWIDTH = 91.6e12, 1.43e12, 864e9
COUNTED, FOLDS, N_CS, WIDTH = 2000, 10, 50, 192
# One step in this many has products in float64, which the others correct: 6n²m flops instead of 4n²m, and 14n² bytes
# instead of 8n².
RENEWED, MORE_FLOPS, MORE_BYTES = 13, 1.5, 1.75
CELLS = [(n, p) for n in (10_000, 20_000) for p in (10, 100, 1000)]


@dataclass
class Steps:
    """Of one loss: the steps of all models, and of the slowest model of each block, which pays the passes over U."""

    name: str
    of_models: float
    of_blocks: float


def counted(estimator: type, n: int) -> Steps:
    """Steps of a fit with folds on n rows."""
    X, y = make_mixture(n, 10, random_state=0)
    model = estimator(Cs=N_CS, cv=FOLDS, solver="spectral", random_state=0).fit(X, y)
    by_c = np.asarray(model.n_iter_).reshape(-1, N_CS)
    neighbours = max(4, WIDTH // (FOLDS + 1))
    blocks = [by_c[:, start : start + neighbours].max() for start in range(0, N_CS, neighbours)]
    return Steps(estimator.__name__, float(by_c.sum()), float(np.sum(blocks)))


def seconds(flops: float, peak: float, moved: float = 0.0) -> float:
    """At the peak of arithmetic or of memory, whichever takes longer."""
    return max(flops / peak, moved / BANDWIDTH)


def main() -> int:
    """Print the table."""
    n_counted = 500 if "--quick" in sys.argv else COUNTED
    losses = [counted(KernelSVC, n_counted), counted(KernelLogistic, n_counted)]
    n_models = (FOLDS + 1) * N_CS
    print(f"arithmetic for an L40S at its peak; steps counted on {n_counted} rows, {n_models} models; no measurement\n")
    print(
        "| n × p | kernel, s | eigendecomposition, s | " + " | ".join(f"steps of {loss.name}, s" for loss in losses),
        end="",
    )
    print(" | certificates, s | Tflop in float64 | Tflop in float32 | TB moved |\n|" + "---|" * (7 + len(losses)))
    for n, p in CELLS:
        kernel, eigen, certificates = n * n * (3.0 * p + 30.0), 9.0 * n**3, 2.0 * n * n * n_models
        cells, single, double, moved = [], eigen, kernel + certificates, 0.0
        for loss in losses:
            flops, read = 4.0 * n * n * loss.of_models, 8.0 * n * n * loss.of_blocks
            renewed, also_read = MORE_FLOPS * flops / RENEWED, MORE_BYTES * read / RENEWED
            cells.append(seconds(flops, SINGLE, read) + seconds(renewed, DOUBLE, also_read))
            single, double, moved = single + flops, double + renewed, moved + read + also_read
        times = [seconds(kernel, DOUBLE), seconds(eigen, SINGLE), *cells, seconds(certificates, DOUBLE)]
        numbers = [f"{value:.2g}" for value in [*times, double / 1e12, single / 1e12, moved / 1e12]]
        print(f"| {n} × {p} | " + " | ".join(numbers) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
