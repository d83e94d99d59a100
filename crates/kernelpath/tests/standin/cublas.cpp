// libcublas: products of matrices, column after column.
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include <cstring>
#include <vector>

#include "context.hpp"

using namespace standin;

namespace {
const char *NAME = "cuBLAS";

bool is_op(cublasOperation_t op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C; }

size_t extent(int rows, int columns, int ld, size_t entry) {
    return rows && columns ? entry * ((size_t)(columns - 1) * ld + rows) : 0;
}

// A matrix on the device, with the name that reports use.
struct Matrix {
    Address address;
    int rows, columns, ld;
    size_t bytes;
    const char *name;
};
template <class T> Matrix matrix(const T *p, int rows, int columns, int ld, const char *name) {
    return {(Address)(uintptr_t)p, rows, columns, ld, extent(rows, columns, ld, sizeof(T)), name};
}
void check(const Matrix &m) {
    if (m.bytes) standin::check(m.address, m.bytes, m.name);
}
template <class T> T *host(const Matrix &m) { return m.bytes ? (T *)standin::host(m.address, m.bytes, m.name) : nullptr; }

// Nobody wrote it: the bytes that memory has when it is allocated.
template <class T> bool is_fresh(const T &value) {
    unsigned char bytes[sizeof(T)];
    memset(bytes, FRESH, sizeof bytes);
    return !memcmp(&value, bytes, sizeof bytes);
}

// C = alpha op(A) op(B) + beta C
template <class T> void multiply(bool ta, bool tb, int m, int n, int k, T alpha, const Matrix &am, const Matrix &bm, T beta, const Matrix &cm) {
    const T *a = host<T>(am), *b = host<T>(bm);
    T *c = host<T>(cm);
    std::vector<T> column(m);
    for (int j = 0; j < n; ++j) {
        std::fill(column.begin(), column.end(), T(0));
        for (int l = 0; l < k; ++l) {
            if (ta) break;
            T x = tb ? b[(size_t)l * bm.ld + j] : b[(size_t)j * bm.ld + l];
            const T *from = a + (size_t)l * am.ld;
            for (int i = 0; i < m; ++i) column[i] += from[i] * x;
        }
        for (int i = 0; i < m && ta; ++i) {
            const T *from = a + (size_t)i * am.ld;
            T sum = 0;
            if (tb) for (int l = 0; l < k; ++l) sum += from[l] * b[(size_t)l * bm.ld + j];
            else for (int l = 0; l < k; ++l) sum += from[l] * b[(size_t)j * bm.ld + l];
            column[i] = sum;
        }
        for (int i = 0; i < m; ++i) {
            T &out = c[(size_t)j * cm.ld + i];
            if (beta != 0 && is_fresh(out)) fault("beta is not 0, and entry (%d, %d) of C was never written", i, j);
            out = alpha * column[i] + (beta == 0 ? T(0) : beta * out);
        }
    }
}

#define CURRENT \
    if (!current_context()) REFUSE(CUBLAS_STATUS_NOT_INITIALIZED, "no context is current in this thread")

template <class T>
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a, int lda,
                    const T *b, int ldb, const T *beta, T *c, int ldc) {
    CURRENT;
    Handle &its = handle_of(handle, NAME);
    if (!is_op(ta) || !is_op(tb)) REFUSE(CUBLAS_STATUS_INVALID_VALUE, "operations %d and %d", ta, tb);
    bool at = ta != CUBLAS_OP_N, bt = tb != CUBLAS_OP_N;
    int rows_a = at ? k : m, rows_b = bt ? n : k;
    if (m < 0 || n < 0 || k < 0) REFUSE(CUBLAS_STATUS_INVALID_VALUE, "m, n, k are %d, %d, %d", m, n, k);
    if (lda < std::max(1, rows_a)) REFUSE(CUBLAS_STATUS_INVALID_VALUE, "lda is %d, and A has %d rows", lda, rows_a);
    if (ldb < std::max(1, rows_b)) REFUSE(CUBLAS_STATUS_INVALID_VALUE, "ldb is %d, and B has %d rows", ldb, rows_b);
    if (ldc < std::max(1, m)) REFUSE(CUBLAS_STATUS_INVALID_VALUE, "ldc is %d, and C has %d rows", ldc, m);
    if (is_far(alpha) || is_far(beta)) fault("alpha or beta lies on the device, and the pointer mode is that of the host");
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    Matrix am = matrix(a, rows_a, at ? m : k, lda, "A"), bm = matrix(b, rows_b, bt ? k : n, ldb, "B"), cm = matrix(c, m, n, ldc, "C");
    check(am);
    check(bm);
    check(cm);
    for (const Matrix &x : {am, bm})
        if (x.bytes && x.address < cm.address + cm.bytes && cm.address < x.address + x.bytes) fault("C overlaps %s", x.name);
    enqueue(*its.stream, [=, alpha = *alpha, beta = *beta] { multiply<T>(at, bt, m, n, k, alpha, am, bm, beta, cm); });
    return CUBLAS_STATUS_SUCCESS;
}
}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    CALL;
    CURRENT;
    *handle = (cublasHandle_t)make_handle(NAME);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    CALL;
    handle_of(handle, NAME).live = false;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    CALL;
    handle_of(handle, NAME);
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    CALL;
    CURRENT;
    Handle &its = handle_of(handle, NAME);
    its.stream = &stream_of(stream, its.device);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
    CALL;
    handle_of(handle, NAME);
    if (mode != CUBLAS_POINTER_MODE_HOST) fault("the stand-in knows alpha and beta on the host only");
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    CALL;
    handle_of(handle, NAME);
    if (mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_PEDANTIC_MATH) fault("math mode %d rounds operands (TF32 or less)", (int)mode);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                           const float *b, int ldb, const float *beta, float *c, int ldc) {
    CALL;
    return gemm(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
cublasStatus_t cublasDgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double *alpha, const double *a, int lda,
                           const double *b, int ldb, const double *beta, double *c, int ldc) {
    CALL;
    return gemm(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
const char *cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        default: return "CUBLAS_STATUS of the stand-in";
    }
}
const char *cublasGetStatusName(cublasStatus_t status) { return cublasGetStatusString(status); }
