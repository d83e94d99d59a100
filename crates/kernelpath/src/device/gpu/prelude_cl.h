/* OpenCL C 1.2: what kernels.src and product.src call by names of their own. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL __kernel __attribute__((reqd_work_group_size(256, 1, 1)))
#define DEVICE
#define GLOBAL __global
#define LOCAL __local
#define SIZE size_t
#define LONG long
#define ULONG ulong
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LID ((int)get_local_id(0))
#define GRP0 ((int)get_group_id(0))
#define GRP1 ((int)get_group_id(1))
#define GRPS1 ((int)get_num_groups(1))
#define BITS(x) as_ulong(x)
#define FROM_BITS(u) as_double(u)
