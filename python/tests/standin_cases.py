"""Small programs on the stand-in for CUDA: python standin_cases.py LIBRARIES CASE.

`CASES` says how each has to end: "right", "status" of a call, "differs" (wrong numbers), "fault:" (the stand-in says
what is wrong and aborts), "exit" status or "signal". test_standin.py runs each in a process of its own.
"""

import ctypes
import os
import sys

import numpy as np
from standin_calls import Cuda, StatusError

CASES = {}
# Values of CUresult.
INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, INVALID_DEVICE = 1, 2, 3, 100, 101
INVALID_CONTEXT, INVALID_PTX, NOT_FOUND, OUT_OF_RESOURCES = 201, 218, 500, 701

TEXT = """
extern "C" __global__ void __launch_bounds__(256) scale(int n, int columns, const double *by, const double *a,
                                                            double *out) {
    int c = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += 256) out[(size_t)c * n + i] = by[i] * a[(size_t)c * n + i];
}
extern "C" __global__ __launch_bounds__(256) void sums(int n, const double *a, double *out) {
    __shared__ double part[256];
    const int t = threadIdx.x, c = blockIdx.x;
    double sum = 0;
    for (int i = t; i < n; i += 256) sum += a[(size_t)c * n + i];
    part[t] = sum;
    __syncthreads();
    for (int gap = 128; gap > 0; gap /= 2) {
        if (t < gap) part[t] += part[t + gap];
        __syncthreads();
    }
    if (t == 0) out[c] = part[0];
}
"""


class WrongError(Exception):
    """A result is wrong."""


def case(ends, **environment):
    def keep(function):
        CASES[function.__name__] = (ends, environment, function)
        return function

    return keep


def expect(got, want, tolerance=1e-12):
    # A NaN differs from everything.
    if not np.max(np.abs(got - want), initial=0) <= tolerance * (1 + np.max(np.abs(want))):
        raise WrongError


def randoms(*shape, kind=np.float64, seed=1):
    return np.asfortranarray(np.random.default_rng(seed).standard_normal(shape).astype(kind))


def product(cuda, kind=np.float64, ta=0, tb=0, beta=0.0, sizes=(5, 3, 7), **wrong):
    """C = op(A) op(B) in buffers without gaps, compared with numpy's; `wrong` replaces arguments of the call."""
    m, n, k = sizes
    a, b = randoms(*((k, m) if ta else (m, k)), kind=kind), randoms(*((n, k) if tb else (k, n)), kind=kind, seed=2)
    handle = ctypes.c_void_p()
    cuda.call("cublas", "cublasCreate_v2", ctypes.byref(handle))
    x, y, z = cuda.upload(a), cuda.upload(b), cuda.make(m * n * a.itemsize)
    real = ctypes.c_double if kind == np.float64 else ctypes.c_float
    one, other = real(1), real(beta)
    used = {"op_a": ta, "op_b": tb, "m": m, "n": n, "k": k, "lda": len(a), "ldb": len(b), "ldc": m, **wrong}
    if "swap" in used:
        x, y = y, x
    call, tolerance = ("cublasDgemm_v2", 1e-12) if kind == np.float64 else ("cublasSgemm_v2", 1e-5)
    sizes = [used[name] for name in ("op_a", "op_b", "m", "n", "k")]
    operands = [ctypes.byref(one), x, used["lda"], y, used["ldb"], ctypes.byref(other), z, used["ldc"]]
    cuda.call("cublas", call, handle, *sizes, *operands)
    expect(cuda.download(z, (m, n), kind), (a.T if ta else a) @ (b.T if tb else b), tolerance)


def scaled(cuda, n=300, columns=3, told=None, order=lambda arguments: arguments, text=TEXT, **launch):
    a, by = randoms(n, columns), randoms(n)
    x, y, z = cuda.upload(a), cuda.upload(by), cuda.make(a.nbytes)
    function = cuda.kernel(cuda.compile(text), "scale")
    arguments = [ctypes.c_int(told or n), ctypes.c_int(columns), y, x, z]
    cuda.launch(function, (columns, 1), order(arguments), **launch)
    cuda.wait()
    expect(cuda.download(z, (n, columns)), by[:, None] * a)


def summed(cuda, text):
    a = randoms(300, 4)
    x, z = cuda.upload(a), cuda.make(32)
    cuda.launch(cuda.kernel(cuda.compile(text), "sums"), (4, 1), [ctypes.c_int(300), x, z])
    expect(cuda.download(z, 4), a.sum(0))


# ---- What is right


@case("right", STANDIN_LEAKS="1")
def nothing_leaks(cuda):
    cuda.free(cuda.upload(randoms(9)))


@case("right")
def products(cuda):
    for kind in (np.float64, np.float32):
        for ta in (0, 1):
            for tb in (0, 1):
                product(cuda, ta=ta, tb=tb, kind=kind)


@case("right")
def kernels(cuda):
    scaled(cuda)
    summed(cuda, TEXT)


@case("right")
def kernels_alone(folder):
    scaled(Cuda(folder, libraries=("cuda", "nvrtc")))


@case("right", STANDIN_CAPABILITY="130")
def text_without_an_architecture(cuda):
    cuda.kernel(cuda.compile(TEXT, b"--std=c++17"), "scale")


@case("status 5", STANDIN_CAPABILITY="130")
def compiler_older_than_the_device(cuda):
    cuda.compile(TEXT, b"--gpu-architecture=compute_130")


@case("right", STANDIN_SEED="7")
def kernels_in_another_order(cuda):
    scaled(cuda)
    summed(cuda, TEXT)


@case("right")
def eigenvectors(cuda):
    for n in (1, 2, 60):
        a = randoms(n, n)
        a = np.asfortranarray(a + a.T)
        other = np.asfortranarray(np.tril(a) + np.triu(np.full((n, n), np.nan), 1))
        values, vectors = eigen(cuda, other, 0)
        expect(values, np.linalg.eigvalsh(a))
        expect(vectors * values @ vectors.T, a)
        expect(vectors.T @ vectors, np.eye(n))


@case("right")
def streams_wait_for_events(cuda):
    one, two, event = cuda.stream(), cuda.stream(), ctypes.c_void_p()
    cuda.cu("EventCreate", ctypes.byref(event), 0)
    a, out = randoms(40), np.zeros(40)
    x = cuda.make(320)
    cuda.cu("MemcpyHtoDAsync_v2", x, ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(320), one)
    cuda.cu("EventRecord", event, one)
    cuda.cu("StreamWaitEvent", two, event, 0)
    cuda.cu("MemcpyDtoHAsync_v2", ctypes.c_void_p(out.ctypes.data), x, ctypes.c_size_t(320), two)
    cuda.cu("StreamSynchronize", two)
    expect(out, a)


def eigen(cuda, a, uplo, short=0):
    n = len(a)
    handle, size = ctypes.c_void_p(), ctypes.c_int()
    cuda.call("cusolver", "cusolverDnCreate", ctypes.byref(handle))
    x, w = cuda.upload(a), cuda.make(8 * n)
    cuda.call("cusolver", "cusolverDnDsyevd_bufferSize", handle, 1, uplo, n, x, n, w, ctypes.byref(size))
    work, info = cuda.make(8 * size.value), cuda.make(4)
    cuda.call("cusolver", "cusolverDnDsyevd", handle, 1, uplo, n, x, n, w, work, size.value - short, info)
    if cuda.download(info, 1, np.int32)[0]:
        raise WrongError
    return cuda.download(w, n), cuda.download(x, (n, n))


# ---- Products with a bug


@case("status 7")
def wrong_op(cuda):
    product(cuda, op_a=1)


@case("differs")
def wrong_op_of_a_square_matrix(cuda):
    product(cuda, sizes=(5, 3, 5), op_a=1)


@case("status 7")
def lda_too_small(cuda):
    product(cuda, lda=4)


@case("fault: out of bounds: A needs 328 bytes")
def lda_too_large(cuda):
    product(cuda, lda=6)


@case("status 7")
def ldc_too_small(cuda):
    product(cuda, ldc=3)


@case("fault: out of bounds: C needs 152 bytes")
def ldc_too_large(cuda):
    product(cuda, ldc=7)


@case("status 7")
def m_and_n_swapped(cuda):
    product(cuda, sizes=(3, 5, 7), m=5, n=3)


@case("fault: out of bounds: B needs")
def too_many_columns(cuda):
    product(cuda, n=4)


@case("differs")
def too_few_columns(cuda):
    product(cuda, n=2)


@case("differs")
def a_and_b_swapped(cuda):
    product(cuda, sizes=(5, 5, 5), swap=True)


@case(r"fault: beta is not 0, and entry \(0, 0\) of C was never written")
def beta_on_fresh_memory(cuda):
    product(cuda, beta=1.0)


@case("fault: C overlaps A")
def product_in_place(cuda):
    x, one = cuda.upload(randoms(4, 4)), ctypes.c_double(1)
    handle = ctypes.c_void_p()
    cuda.call("cublas", "cublasCreate_v2", ctypes.byref(handle))
    cuda.call("cublas", "cublasDgemm_v2", handle, 0, 0, 4, 4, 4, ctypes.byref(one), x, 4, x, 4, ctypes.byref(one), x, 4)


@case("status 3")
def workspace_too_small(cuda):
    eigen(cuda, np.eye(5), 0, short=1)


# ---- Kernels with a bug


@case("differs")
def barrier_missing(cuda):
    summed(cuda, TEXT.replace("__syncthreads();\n    }", "}"))


@case("fault: threads of a block part: some wait at the barrier in line|some end, some wait")
def barrier_in_a_branch(cuda):
    summed(cuda, TEXT.replace("if (t < gap) part[t]", "if (t >= gap) return; part[t]"))


@case("fault: threads of a block part: some wait at the barrier in line")
def barriers_that_differ(cuda):
    summed(cuda, TEXT.replace("part[t] = sum;", "part[t] = sum; if (t < 9) __syncthreads(); else __syncthreads();"))


@case("fault: illegal address: a kernel (reads|writes) byte .* behind allocation")
def wrong_row_count(cuda):
    scaled(cuda, told=301)


@case("differs")
def row_count_too_small(cuda):
    scaled(cuda, told=299)


@case(r"fault: argument 1 \(of 5\) of scale is the address of an allocation, and the kernel takes a number there")
def number_and_address_swapped(cuda):
    scaled(cuda, order=lambda a: [a[2], a[1], a[0], *a[3:]])


@case(r"fault: argument 3 \(of 5\) of scale is 0x.*, which is no device address")
def address_and_number_swapped(cuda):
    scaled(cuda, order=lambda a: [a[0], ctypes.c_uint64(5), ctypes.c_uint64(3), *a[3:]])


@case("fault: illegal address|fault: something was written")
def two_addresses_swapped(cuda):
    scaled(cuda, order=lambda a: [a[0], a[1], a[4], a[3], a[2]])


@case(r"fault: argument 5 \(of 5\) of scale cannot be read: are there too few\?")
def too_few_arguments(cuda):
    scaled(cuda, order=lambda a: a[:4])


@case("fault: .* is 0x.*, which is no device address")
def address_of_the_host(cuda):
    host = randoms(900)
    scaled(cuda, order=lambda a: [*a[:3], ctypes.c_uint64(host.ctypes.data), a[4]])


@case(r"fault: argument 4 \(of 5\) of scale is a null pointer")
def null_pointer(cuda):
    scaled(cuda, order=lambda a: [*a[:3], ctypes.c_uint64(0), a[4]])


@case("fault: .* which is not aligned to 8 bytes")
def address_not_aligned(cuda):
    scaled(cuda, order=lambda a: [*a[:4], ctypes.c_uint64(a[4].value + 4)])


@case("differs")
def sum_of_what_nobody_wrote(cuda):
    summed(cuda, TEXT.replace("part[t] = sum;", "if (t < 200) part[t] = sum;"))


@case("fault: an index is outside its array, line 12 of text.cu")
def index_outside_shared_memory(cuda):
    summed(cuda, TEXT.replace("part[t] = sum;", "part[t + 1] = sum;"))


@case("fault: a product of integers overflows, line 5 of text.cu")
def index_overflows(cuda):
    scaled(cuda, text=TEXT.replace("by[i] *", "by[i] * 1.0 * (((c + 70000) * (i + 70000)) != 0) *"))


@case("fault: something was written at byte 1 behind allocation 2 of 30 bytes")
def byte_behind_an_allocation(cuda):
    text = 'extern "C" __global__ void touch(char *p) { p[30] = 1; }'
    cuda.make(1)
    cuda.launch(cuda.kernel(cuda.compile(text), "touch"), (1, 1), [cuda.make(30)])
    cuda.wait()


@case("status 6")
def syntax_error(cuda):
    cuda.compile(TEXT.replace("double sum = 0;", "double sum = 0"))


@case("status 6")
def header_of_the_system(cuda):
    cuda.compile("#include <math.h>\n" + TEXT)


@case("status 5")
def unknown_option(cuda):
    cuda.compile(TEXT, b"--gpu-architecture=compute_89", b"--fast")


@case(f"status {INVALID_PTX}")
def text_for_a_newer_device(cuda):
    cuda.compile(TEXT, b"--gpu-architecture=compute_120")


@case(f"status {NOT_FOUND}")
def unknown_kernel(cuda):
    cuda.kernel(cuda.compile(TEXT), "gone")


@case(f"status {INVALID_VALUE}")
def grid_too_high(cuda):
    function = cuda.kernel(cuda.compile(TEXT), "scale")
    cuda.launch(function, (1, 65536), [ctypes.c_int(0), ctypes.c_int(0), *[ctypes.c_uint64(0)] * 3])


@case(f"status {INVALID_VALUE}")
def block_too_large(cuda):
    scaled(cuda, block=1025)


@case(f"status {OUT_OF_RESOURCES}")
def block_above_its_bounds(cuda):
    scaled(cuda, block=512)


# ---- Memory


@case("fault: double free of allocation 1 of 72 bytes")
def double_free(cuda):
    address = cuda.upload(randoms(9))
    cuda.free(address)
    cuda.free(address)


@case("fault: double free of allocation 1 of 80 bytes")
def double_free_in_a_stream(cuda):
    address, stream = cuda.make(80), cuda.stream()
    cuda.cu("MemFreeAsync", address, stream)
    cuda.cu("MemFreeAsync", address, stream)


@case("fault: use after free: the source is in allocation 1 of 72 bytes, which was freed")
def use_after_free(cuda):
    address = cuda.upload(randoms(9))
    cuda.free(address)
    cuda.download(address, 9)


@case("fault: use after free: argument 5 .* is in allocation .*, whose free waits in a stream")
def launch_after_free_in_a_stream(cuda):
    freed = cuda.make(7200)
    cuda.cu("MemFreeAsync", freed, cuda.stream())
    scaled(cuda, order=lambda a: [*a[:4], freed])


@case("fault: use after free: the destination is in allocation 1 of 72 bytes, which was freed")
def free_overtakes_a_copy(cuda):
    a, one, two = randoms(9), cuda.stream(), cuda.stream()
    address = cuda.make(72)
    cuda.cu("MemcpyHtoDAsync_v2", address, ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(72), one)
    cuda.cu("MemFreeAsync", address, two)
    cuda.cu("StreamSynchronize", two)
    cuda.cu("StreamSynchronize", one)


@case("fault: free of 0x.*, which is 8 bytes inside allocation 1")
def free_of_the_middle(cuda):
    cuda.free(ctypes.c_uint64(cuda.make(72).value + 8))


@case("fault: out of bounds: the source needs 80 bytes, and allocation 1 has 72 there")
def copy_out_of_bounds(cuda):
    cuda.download(cuda.upload(randoms(9)), 10)


@case("fault: out of bounds: the destination needs 72 bytes, and allocation 1 has 64 there")
def upload_out_of_bounds(cuda):
    a, address = randoms(9), cuda.make(72)
    cuda.cu("MemcpyHtoD_v2", ctypes.c_uint64(address.value + 8), ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(72))


@case("fault: the source is 0x.*, an address of the device")
def copy_from_the_device_as_from_the_host(cuda):
    address = cuda.make(72)
    cuda.cu("MemcpyHtoD_v2", address, ctypes.c_void_p(address.value), ctypes.c_size_t(72))


@case("signal 11")
def host_follows_an_address(cuda):
    ctypes.string_at(cuda.make(72).value, 8)


@case("differs")
def fresh_memory_is_nan(cuda):
    expect(cuda.download(cuda.make(72), 9), np.zeros(9))


@case("differs")
def copy_without_waiting(cuda):
    a, out, stream = randoms(40), np.zeros(40), cuda.stream()
    cuda.cu("MemcpyDtoHAsync_v2", ctypes.c_void_p(out.ctypes.data), cuda.upload(a), ctypes.c_size_t(320), stream)
    expect(out, a)


@case("differs")
def stream_that_does_not_wait(cuda):
    one, two = cuda.stream(), cuda.stream()
    a, out, x = randoms(40), np.zeros(40), cuda.make(320)
    cuda.cu("MemcpyHtoDAsync_v2", x, ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(320), one)
    cuda.cu("MemcpyDtoHAsync_v2", ctypes.c_void_p(out.ctypes.data), x, ctypes.c_size_t(320), two)
    cuda.cu("StreamSynchronize", two)
    expect(out, a)


@case(f"status {OUT_OF_MEMORY}", STANDIN_MEMORY="1000")
def out_of_memory(cuda):
    cuda.make(600)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cu("MemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (400, 1000)
    cuda.make(401)


@case("right", STANDIN_MEMORY="1000")
def memory_comes_back(cuda):
    for _ in range(10):
        cuda.free(cuda.make(1000))
        address = cuda.make(1000)
        cuda.cu("MemFreeAsync", address, cuda.stream())


@case("right", STANDIN_FAIL_ALLOCATION="3")
def third_allocation_fails(cuda):
    def status():
        try:
            cuda.make(8)
        except StatusError as error:
            return error.args[0]
        return 0

    assert [status() for _ in range(5)] == [0, 0, OUT_OF_MEMORY, 0, 0]


@case("exit 77", STANDIN_LEAKS="1")
def leaks(cuda):
    cuda.make(8)


@case("exit 77", STANDIN_LEAKS="1")
def leaks_of_a_context(cuda):
    cuda.make(8)
    cuda.cu("DevicePrimaryCtxRelease_v2", 0)


# ---- Devices


@case(f"status {NO_DEVICE}", STANDIN_DEVICES="0")
def no_device(folder):
    Cuda(folder)


@case(f"status {INVALID_DEVICE}")
def unknown_device(cuda):
    cuda.cu("DeviceGet", ctypes.byref(ctypes.c_int()), 1)


@case("right", STANDIN_DEVICES="2")
def two_devices(cuda):
    count = ctypes.c_int()
    cuda.cu("DeviceGetCount", ctypes.byref(count))
    assert count.value == 2
    cuda.cu("DeviceGet", ctypes.byref(count), 1)


@case("fault: the source is in memory of device 0, and device 1 is current", STANDIN_DEVICES="2")
def memory_of_another_device(cuda):
    address, context = cuda.upload(randoms(9)), ctypes.c_void_p()
    cuda.cu("DevicePrimaryCtxRetain", ctypes.byref(context), 1)
    cuda.cu("CtxSetCurrent", context)
    cuda.download(address, 9)


@case("right")
def forked_child_has_no_cuda(cuda):
    child = os.fork()
    if child == 0:
        try:
            cuda.cu("Init", 0)
        except StatusError as error:
            os._exit(error.args[0])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == NOT_INITIALIZED


@case(f"status {INVALID_CONTEXT}")
def no_context(cuda):
    cuda.cu("CtxSetCurrent", None)
    cuda.make(8)


@case("fault: use of a stream that was destroyed")
def use_of_a_destroyed_stream(cuda):
    stream = cuda.stream()
    cuda.cu("StreamDestroy_v2", stream)
    cuda.cu("StreamSynchronize", stream)


def main(folder, name):
    function = CASES[name][2]
    try:
        function(folder if function.__code__.co_varnames[0] == "folder" else Cuda(folder))
    except StatusError as error:
        print(f"status {error.args[0]}")
    except WrongError:
        print("differs")
    else:
        print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
