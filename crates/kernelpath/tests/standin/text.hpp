// Put before a CUDA text by the stand-in's NVRTC, so that g++ compiles it for the host.
// STANDIN_NAMES: only the preprocessor runs, to find the kernels.
#ifdef STANDIN_NAMES
#define __global__ STANDIN_KERNEL
#define __launch_bounds__(...) STANDIN_BOUNDS(__VA_ARGS__)
#else
#include <cmath>
#include <type_traits>
#include <utility>

#include "abi.hpp"

namespace standin {
static State *state;
}
#define __global__ __attribute__((used))
#define __launch_bounds__(...)
#define threadIdx (standin::state->thread)
#define blockIdx (standin::state->block)
#define blockDim (standin::state->block_size)
#define gridDim (standin::state->grid)
// Each place in the text where threads meet has a number of its own, also two in one line.
#define __syncthreads() standin::state->wait(__COUNTER__, __LINE__)

using std::ceil; using std::exp; using std::expm1; using std::fabs; using std::floor; using std::fma; using std::fmax; using std::fmin;
using std::isfinite; using std::isinf; using std::isnan; using std::log; using std::log1p; using std::pow; using std::sqrt; using std::tanh;
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T atomicAdd(T *p, std::common_type_t<T> v) { T old = *p; *p = old + v; return old; }
template <class T> inline T atomicMax(T *p, std::common_type_t<T> v) { T old = *p; if (old < v) *p = v; return old; }
template <class T> inline T atomicMin(T *p, std::common_type_t<T> v) { T old = *p; if (v < old) *p = v; return old; }

namespace standin {
template <class T> constexpr Parameter parameter() {
    if constexpr (std::is_pointer_v<T>) {
        using To = std::remove_pointer_t<T>;
        if constexpr (std::is_void_v<To>) return {sizeof(T), 1, 1};
        else return {sizeof(T), sizeof(To), alignof(To)};
    } else return {sizeof(T), 0, alignof(T)};
}
template <auto F> struct Kernel;
template <class... A, void (*F)(A...)> struct Kernel<F> {
    static constexpr Parameter parameters[] = {parameter<A>()..., Parameter{}};
    template <size_t... I> static void with(void **values, std::index_sequence<I...>) { F(*(A *)values[I]...); }
    static void call(void **values) { with(values, std::index_sequence_for<A...>{}); }
    static constexpr Entry entry(unsigned most_threads) { return {call, most_threads, sizeof...(A), parameters}; }
};
constexpr unsigned bounds(unsigned most_threads = 1024, unsigned = 0, unsigned = 0) { return most_threads; }
}  // namespace standin

// Shared memory lies in a section of its own, which the driver fills with NaN before each block.
#define __shared__ static __attribute__((section("standin_shared")))
extern char __start_standin_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_standin_shared[] __attribute__((weak, visibility("hidden")));
extern "C" __attribute__((used, visibility("default"))) standin::Shared standin_bind(standin::State *state) {
    standin::state = state;
    return {__start_standin_shared, __stop_standin_shared};
}

// What g++'s checks call (-fsanitize=bounds and others): the data starts with the place in the text.
namespace standin {
struct Place {
    const char *file;
    unsigned line, column;
};
}
#define STANDIN_CHECK(name, what)                                                                                        \
    extern "C" __attribute__((used, visibility("hidden"))) void __ubsan_handle_##name##_abort(standin::Place *place, ...) { \
        standin::state->broken(what, place->file, place->line);                                                          \
    }
STANDIN_CHECK(out_of_bounds, "an index is outside its array")
STANDIN_CHECK(add_overflow, "a sum of integers overflows")
STANDIN_CHECK(sub_overflow, "a difference of integers overflows")
STANDIN_CHECK(mul_overflow, "a product of integers overflows")
STANDIN_CHECK(negate_overflow, "the negative of an integer overflows")
STANDIN_CHECK(divrem_overflow, "an integer is divided by zero")
STANDIN_CHECK(shift_out_of_bounds, "a shift is outside the integer")
#endif
#define __device__ static
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
