// libcusolver: the eigendecomposition of a symmetric matrix.
#pragma GCC visibility push(default)
#include <cusolverDn.h>
#pragma GCC visibility pop

#include <cmath>
#include <cstring>
#include <vector>

#include "context.hpp"
#include "eigen.hpp"

using namespace standin;

namespace {
const char *NAME = "cuSOLVER";

#define CURRENT \
    if (!current_context()) REFUSE(CUSOLVER_STATUS_NOT_INITIALIZED, "no context is current in this thread")

size_t workspace(int n) { return 2 * (size_t)n * n + 10 * (size_t)n + 1; }

template <class T>
void decompose(bool vectors, bool upper, int n, Address a, int lda, Address w, Address work, int lwork, Address info) {
    size_t bytes = sizeof(T) * ((size_t)(n - 1) * lda + n);
    T *matrix = (T *)host(a, bytes, "A"), *values = (T *)host(w, sizeof(T) * n, "W");
    int *result = (int *)host(info, sizeof(int), "devInfo");
    std::vector<T> v((size_t)n * n), d;
    // Only one triangle is read.
    for (int j = 0; j < n; ++j)
        for (int i = 0; i <= j; ++i) v[(size_t)i * n + j] = v[(size_t)j * n + i] = upper ? matrix[(size_t)j * lda + i] : matrix[(size_t)i * lda + j];
    static size_t made;
    bool converged = ++made != setting("STANDIN_FAIL_EIGEN", 0) && symmetric_eigen(n, v, d);
    // The library of a card need not be as exact as this one.
    size_t blur = sizeof(T) == 4 ? setting("STANDIN_BLUR", 0) : 0;
    for (T &entry : v)
        if (blur) entry += T(std::ldexp(2.0 * (double)(chance() >> 11) / 9007199254740992.0 - 1.0, -(int)blur));
    for (int j = 0; j < n; ++j) {
        values[j] = converged ? (T)d[j] : (T)NAN;
        // Without vectors, the matrix is destroyed all the same.
        for (int i = 0; i < n; ++i) matrix[(size_t)j * lda + i] = converged && vectors ? (T)v[(size_t)i * n + j] : (T)NAN;
    }
    memset(host(work, sizeof(T) * (size_t)lwork, "the workspace"), FRESH, sizeof(T) * (size_t)lwork);
    *result = converged ? 0 : 1;
}

bool is_wrong(cusolverEigMode_t mode, cublasFillMode_t uplo, int n, int lda) {
    return (mode != CUSOLVER_EIG_MODE_VECTOR && mode != CUSOLVER_EIG_MODE_NOVECTOR) ||
           (uplo != CUBLAS_FILL_MODE_LOWER && uplo != CUBLAS_FILL_MODE_UPPER) || n < 0 || lda < std::max(1, n);
}

template <class T>
cusolverStatus_t buffer(cusolverDnHandle_t handle, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, const T *a, int lda, const T *w, int *lwork) {
    CURRENT;
    handle_of(handle, NAME);
    if (is_wrong(mode, uplo, n, lda)) REFUSE(CUSOLVER_STATUS_INVALID_VALUE, "mode %d, triangle %d, n %d, lda %d", mode, uplo, n, lda);
    if ((a && !is_far(a)) || (w && !is_far(w))) fault("A or W lies on the host");
    if (is_far(lwork)) fault("lwork lies on the device");
    if (workspace(n) > 0x7fffffff) REFUSE(CUSOLVER_STATUS_INVALID_VALUE, "the workspace of n = %d has more entries than an int counts", n);
    *lwork = (int)workspace(n);
    return CUSOLVER_STATUS_SUCCESS;
}

template <class T>
cusolverStatus_t syevd(cusolverDnHandle_t handle, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, T *a, int lda, T *w, T *work, int lwork, int *info) {
    CURRENT;
    Handle &its = handle_of(handle, NAME);
    if (is_wrong(mode, uplo, n, lda)) REFUSE(CUSOLVER_STATUS_INVALID_VALUE, "mode %d, triangle %d, n %d, lda %d", mode, uplo, n, lda);
    if (lwork < 0 || (size_t)lwork < workspace(n)) REFUSE(CUSOLVER_STATUS_INVALID_VALUE, "lwork is %d, and %zu are needed", lwork, workspace(n));
    if (n == 0) return CUSOLVER_STATUS_SUCCESS;
    auto far = [](const void *p) { return (Address)(uintptr_t)p; };
    check(far(a), sizeof(T) * ((size_t)(n - 1) * lda + n), "A");
    check(far(w), sizeof(T) * n, "W");
    check(far(work), sizeof(T) * (size_t)lwork, "the workspace");
    check(far(info), sizeof(int), "devInfo");
    bool vectors = mode == CUSOLVER_EIG_MODE_VECTOR, upper = uplo == CUBLAS_FILL_MODE_UPPER;
    enqueue(*its.stream, [=] { decompose<T>(vectors, upper, n, far(a), lda, far(w), far(work), lwork, far(info)); });
    return CUSOLVER_STATUS_SUCCESS;
}
}  // namespace

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
    CALL;
    CURRENT;
    *handle = (cusolverDnHandle_t)make_handle(NAME);
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
    CALL;
    handle_of(handle, NAME).live = false;
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
    CALL;
    CURRENT;
    Handle &its = handle_of(handle, NAME);
    its.stream = &stream_of(stream, its.device);
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSsyevd_bufferSize(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, const float *a, int lda, const float *w, int *lwork) {
    CALL;
    return buffer(h, mode, uplo, n, a, lda, w, lwork);
}
cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, const double *a, int lda, const double *w, int *lwork) {
    CALL;
    return buffer(h, mode, uplo, n, a, lda, w, lwork);
}
cusolverStatus_t cusolverDnSsyevd(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, float *a, int lda, float *w, float *work, int lwork, int *info) {
    CALL;
    return syevd(h, mode, uplo, n, a, lda, w, work, lwork, info);
}
cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n, double *a, int lda, double *w, double *work, int lwork, int *info) {
    CALL;
    return syevd(h, mode, uplo, n, a, lda, w, work, lwork, info);
}
