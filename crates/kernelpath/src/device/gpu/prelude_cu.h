/* CUDA C++: what kernels.src and product.src call by names of their own. */
#define KERNEL extern "C" __global__ __launch_bounds__(256, 2)
#define DEVICE __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define SIZE unsigned long long
#define LONG long long
#define ULONG unsigned long long
#define BARRIER __syncthreads()
#define LID ((int)threadIdx.x)
#define GRP0 ((int)blockIdx.x)
#define GRP1 ((int)blockIdx.y)
#define GRPS1 ((int)gridDim.y)
#define BITS(x) ((ULONG)__double_as_longlong(x))
#define FROM_BITS(u) __longlong_as_double((LONG)(u))
