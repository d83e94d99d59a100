// Eigenvalues and eigenvectors of a symmetric matrix: Householder reflections to a tridiagonal matrix, then implicit QL
// (EISPACK's tred2 and tql2; Wilkinson and Reinsch, Handbook for Automatic Computation II, 1971).
#pragma once
#include <cmath>
#include <limits>
#include <vector>

namespace standin {
// `v` is n x n, row after row; on return its columns are the eigenvectors and `d` the eigenvalues, rising. False: no convergence.
// All is computed in the precision T.
template <class T>
inline bool symmetric_eigen(int n, std::vector<T> &v, std::vector<T> &d) {
    auto at = [&](int i, int j) -> T & { return v[(size_t)i * n + j]; };
    std::vector<T> e(n, 0.0);
    d.assign(n, 0.0);
    for (T x : v)
        if (!std::isfinite(x)) return false;
    for (int j = 0; j < n; ++j) d[j] = at(n - 1, j);
    for (int i = n - 1; i > 0; --i) {
        T scale = 0, h = 0;
        for (int k = 0; k < i; ++k) scale += std::fabs(d[k]);
        if (scale == 0) {
            e[i] = d[i - 1];
            for (int j = 0; j < i; ++j) {
                d[j] = at(i - 1, j);
                at(i, j) = at(j, i) = 0;
            }
        } else {
            for (int k = 0; k < i; ++k) {
                d[k] /= scale;
                h += d[k] * d[k];
            }
            T f = d[i - 1], g = f > 0 ? -std::sqrt(h) : std::sqrt(h);
            e[i] = scale * g;
            h -= f * g;
            d[i - 1] = f - g;
            for (int j = 0; j < i; ++j) e[j] = 0;
            for (int j = 0; j < i; ++j) {
                f = d[j];
                at(j, i) = f;
                g = e[j] + at(j, j) * f;
                for (int k = j + 1; k < i; ++k) {
                    g += at(k, j) * d[k];
                    e[k] += at(k, j) * f;
                }
                e[j] = g;
            }
            f = 0;
            for (int j = 0; j < i; ++j) {
                e[j] /= h;
                f += e[j] * d[j];
            }
            T half = f / (h + h);
            for (int j = 0; j < i; ++j) e[j] -= half * d[j];
            for (int j = 0; j < i; ++j) {
                f = d[j];
                g = e[j];
                for (int k = j; k < i; ++k) at(k, j) -= f * e[k] + g * d[k];
                d[j] = at(i - 1, j);
                at(i, j) = 0;
            }
        }
        d[i] = h;
    }
    for (int i = 0; i < n - 1; ++i) {
        at(n - 1, i) = at(i, i);
        at(i, i) = 1;
        T h = d[i + 1];
        if (h != 0) {
            for (int k = 0; k <= i; ++k) d[k] = at(k, i + 1) / h;
            std::vector<T> g(i + 1, 0.0);
            for (int k = 0; k <= i; ++k)
                for (int j = 0; j <= i; ++j) g[j] += at(k, i + 1) * at(k, j);
            for (int k = 0; k <= i; ++k)
                for (int j = 0; j <= i; ++j) at(k, j) -= g[j] * d[k];
        }
        for (int k = 0; k <= i; ++k) at(k, i + 1) = 0;
    }
    for (int j = 0; j < n; ++j) {
        d[j] = at(n - 1, j);
        at(n - 1, j) = 0;
    }
    at(n - 1, n - 1) = 1;

    // From here on vectors are rows, so that a rotation runs along memory.
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) std::swap(at(i, j), at(j, i));
    for (int i = 1; i < n; ++i) e[i - 1] = e[i];
    e[n - 1] = 0;
    T f = 0, largest = 0;
    const T eps = std::numeric_limits<T>::epsilon();
    for (int l = 0; l < n; ++l) {
        largest = std::max(largest, std::fabs(d[l]) + std::fabs(e[l]));
        int m = l;
        while (m < n - 1 && std::fabs(e[m]) > eps * largest) ++m;
        for (int tries = 0; m > l && std::fabs(e[l]) > eps * largest; ++tries) {
            if (tries == 100) return false;
            T g = d[l], p = (d[l + 1] - g) / (2 * e[l]), r = std::copysign(std::hypot(p, T(1)), p);
            d[l] = e[l] / (p + r);
            d[l + 1] = e[l] * (p + r);
            T next = d[l + 1], h = g - d[l];
            for (int i = l + 2; i < n; ++i) d[i] -= h;
            f += h;
            p = d[m];
            T c = 1, c2 = 1, c3 = 1, edge = e[l + 1], s = 0, s2 = 0;
            for (int i = m - 1; i >= l; --i) {
                c3 = c2;
                c2 = c;
                s2 = s;
                g = c * e[i];
                h = c * p;
                r = std::hypot(p, e[i]);
                e[i + 1] = s * r;
                s = e[i] / r;
                c = p / r;
                p = c * d[i] - s * g;
                d[i + 1] = h + s * (c * g + s * d[i]);
                T *x = &at(i, 0), *y = &at(i + 1, 0);
                for (int k = 0; k < n; ++k) {
                    T old = y[k];
                    y[k] = s * x[k] + c * old;
                    x[k] = c * x[k] - s * old;
                }
            }
            p = -s * s2 * c3 * edge * e[l] / next;
            e[l] = s * p;
            d[l] = c * p;
        }
        d[l] += f;
        e[l] = 0;
    }
    // Rising, by insertion of rows.
    for (int i = 0; i < n - 1; ++i) {
        int least = i;
        for (int j = i + 1; j < n; ++j)
            if (d[j] < d[least]) least = j;
        if (least == i) continue;
        std::swap(d[i], d[least]);
        for (int k = 0; k < n; ++k) std::swap(at(i, k), at(least, k));
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) std::swap(at(i, j), at(j, i));
    return true;
}
}  // namespace standin
