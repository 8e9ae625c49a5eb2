"""Linear models: directions, ellipsoids, confidence radii, and how much the chosen arms reveal.

Derived in the chapter on linear bandits unless a function names another one. A compiled function
calls only functions of this file, so numba's on-disk cache can never serve stale machine code.
"""

import numpy as np
from scipy.integrate import quad

from lib.kernels import compile_whole


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors, on the last axis, to length one.

    A vector that is zero up to rounding has no direction and becomes zero.
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    zero = lengths <= 1e-12 * lengths.max(initial=0)
    return np.where(zero, 0.0, vectors / np.where(zero, 1.0, lengths))


def directions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw vectors uniformly from the unit sphere; the last number of `shape` is the dimension."""
    return unit_rows(rng.standard_normal(shape))


def ellipsoid_norms(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ‖x‖_A = √(xᵀAx) for matrices A (R, d, d) and vectors x (R, …, d)."""
    forms = np.einsum("r...d,rde,r...e->r...", x, A, x, optimize=True)
    return np.sqrt(np.maximum(forms, 0.0))


def log_det_bound(n, d: int, lam: float = 1.0):
    """Return d·log(1 + n/(λd)), the most that log det(I + Σxxᵀ/λ) can be after n unit arms.

    Twice this bounds Σ min{1, ‖x‖²} in the norms of the growing inverses: the elliptical potential.
    """
    return d * np.log1p(n / (lam * d))


def confidence_radius(n, d: int, delta: float, lam: float = 1.0, sigma: float = 1.0):
    """Return β with ‖θ̂ − θ‖_M ≤ β in all rounds at once but for a chance of δ.

    For ‖θ‖ ≤ 1, unit arms, σ-sub-Gaussian noise and the ridge λ: √λ + σ√(2 log(1/δ) + log-det).
    """
    return np.sqrt(lam) + sigma * np.sqrt(2 * np.log(1 / delta) + log_det_bound(n, d, lam))


def sphere_moments(d: int) -> tuple[float, float]:
    """Return mean and variance of (zᵀx)² for a unit vector z and arms x uniform on the sphere."""
    return 1 / d, 2 * (d - 1) / (d**2 * (d + 2))


def lambda_tilde(lambda_x: float, variance: float, K: int) -> float:
    """Return λ̃ = ∫₀^λ_x (1 − exp(−(λ_x − y)²/2σ²))ᴷ dy.

    It is what any choice among K arms reveals of a direction at the least, in the mean, if (zᵀx)²
    has mean λ_x and is sub-Gaussian with variance proxy σ². Derived in the chapter on misspecified
    users, where arms on a sphere have lambda_tilde(*sphere_moments(d), K).
    """
    if variance == 0:
        return lambda_x
    return quad(lambda y: (-np.expm1(-(y**2) / (2 * variance))) ** K, 0, lambda_x, epsabs=0)[0]


@compile_whole
def invert(A):
    """Replace a positive definite matrix by its inverse, by Gauss–Jordan elimination.

    Derived in the chapter on clustering of bandits: up to some tens of dimensions it costs less
    than a call of LAPACK, and it allocates nothing. No pivot is needed, since none can vanish.
    """
    for p in range(A.shape[0]):
        scale = 1.0 / A[p, p]
        A[p, p] = 1.0
        for j in range(A.shape[0]):
            A[p, j] *= scale
        for i in range(A.shape[0]):
            if i != p:
                factor = A[i, p]
                A[i, p] = 0.0
                for j in range(A.shape[0]):
                    A[i, j] -= factor * A[p, j]


@compile_whole
def append_row(R, z, x, y):
    """Append the row (x, y) to the triangular system (R, z) by plane rotations; x is used up.

    Derived in the chapter on linear bandits: RᵀR grows by xxᵀ and Rᵀz by y·x, R stays triangular.
    """
    for k in range(x.size):
        length = np.hypot(R[k, k], x[k])
        c, s = R[k, k] / length, x[k] / length
        for j in range(k, x.size):
            above = R[k, j]
            R[k, j] = c * above + s * x[j]
            x[j] = c * x[j] - s * above
        above = z[k]
        z[k] = c * above + s * y
        y = c * y - s * above


@compile_whole
def solve_upper(R, y):
    """Replace y by the solution θ of R θ = y for an upper triangular R, from the last row up."""
    for i in range(y.size - 1, -1, -1):
        for j in range(i + 1, y.size):
            y[i] -= R[i, j] * y[j]
        y[i] /= R[i, i]
