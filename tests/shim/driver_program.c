/* A program of the CUDA driver API, as it is for a GPU of this machine: memory, copies, streams, events. It prints
 * "all calls" if all is as CUDA does it on any GPU; with the argument "kernel" it also adds two vectors by PTX. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int problems = 0, is_remote = 0; /* a local GPU gives memory in larger pieces */
#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition) && ++problems < 20) printf("line %d: %s\n", __LINE__, #condition); \
  } while (0)
#define DO(call)                                                                                          \
  do {                                                                                                    \
    const CUresult code = call;                                                                           \
    if (code != CUDA_SUCCESS && ++problems < 20) printf("line %d: %s: %d\n", __LINE__, #call, (int)code); \
  } while (0)
#define FAILS(call, wanted)                                                                         \
  do {                                                                                              \
    const CUresult code = call;                                                                     \
    if (code != wanted && ++problems < 20) printf("line %d: %s: %d\n", __LINE__, #call, (int)code); \
  } while (0)

enum { count = 300000 };
static int numbers[count], got[count];

static void show_device(void) {
  int devices = 0, version = 0, threads = 0, warp = 0;
  char name[100] = "", bus[20];
  size_t bytes = 0;
  CUuuid uuid;
  DO(cuDriverGetVersion(&version));
  DO(cuDeviceGetCount(&devices));
  CHECK(version >= 12000 && devices >= 1);
  CUdevice device;
  DO(cuDeviceGet(&device, devices - 1));
  FAILS(cuDeviceGet(&device, devices), CUDA_ERROR_INVALID_DEVICE);
  DO(cuDeviceGet(&device, 0));
  DO(cuDeviceGetName(name, sizeof name, device));
  DO(cuDeviceTotalMem(&bytes, device));
  DO(cuDeviceGetUuid(&uuid, device));
  DO(cuDeviceGetPCIBusId(bus, sizeof bus, device));
  DO(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
  DO(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  CHECK(threads == 1024 && warp == 32 && bytes > 0 && strlen(name) > 0);
  printf("%d GPUs, %s\n", devices, name);
}

static void use_contexts(CUcontext primary) {
  CUcontext made = NULL, now = NULL;
  CUdevice device = 7;
  unsigned flags = 9;
  int active = 0;
#if CUDA_VERSION >= 13000
  DO(cuCtxCreate(&made, NULL, 0, 0));
#else
  DO(cuCtxCreate(&made, 0, 0));
#endif
  DO(cuCtxGetCurrent(&now));
  CHECK(now == made);
  DO(cuCtxPushCurrent(primary));
  DO(cuCtxGetDevice(&device));
  DO(cuCtxPopCurrent(&now));
  CHECK(device == 0 && now == primary);
  DO(cuCtxDestroy(made));
  DO(cuCtxSetCurrent(primary));
  DO(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK(active == 1);
}

static void copy_bytes(void) {
  CUdeviceptr a, b, pitched, start;
  size_t pitch = 0, bytes = 0, before = 0, after = 0, total = 0;
  DO(cuMemGetInfo(&before, &total));
  DO(cuMemAlloc(&a, sizeof numbers));
  DO(cuMemAlloc(&b, sizeof numbers));
  DO(cuMemGetInfo(&after, &total));
  CHECK(before - after >= 2 * sizeof numbers);
  for (int i = 0; i < count; ++i) numbers[i] = i;
  DO(cuMemcpyHtoD(a, numbers, sizeof numbers));
  memset(numbers, 0, sizeof numbers); /* its bytes have gone */
  DO(cuMemcpyDtoD(b + 40, a, sizeof numbers - 40));
  DO(cuMemsetD32(b, 0x01020304, 10));
  DO(cuMemcpyDtoH(got, b, sizeof got));
  for (int i = 0; i < count; ++i) CHECK(got[i] == (i < 10 ? 0x01020304 : i - 10));
  DO(cuMemsetD16(b + 2, 0x7788, 1));
  DO(cuMemsetD8(b + 7, 0x99, sizeof numbers - 7));
  DO(cuMemcpyDtoH(got, b, sizeof got));
  CHECK(got[0] == 0x77880304 && got[1] == (int)0x99020304 && got[2] == (int)0x99999999 && got[count - 1] == got[2]);
  DO(cuMemcpy((CUdeviceptr)(size_t)got, a + 4, 8));
  CHECK(got[0] == 1 && got[1] == 2);

  /* A box of 3 rows of 5 numbers, and its second row. */
  DO(cuMemAllocPitch(&pitched, &pitch, 5 * sizeof(int), 3, 4));
  CUDA_MEMCPY2D box = {0};
  box.srcMemoryType = CU_MEMORYTYPE_HOST, box.srcHost = got, box.srcPitch = 7 * sizeof(int);
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE, box.dstDevice = pitched, box.dstPitch = pitch;
  box.WidthInBytes = 5 * sizeof(int), box.Height = 3;
  for (int i = 0; i < 21; ++i) got[i] = i;
  DO(cuMemcpy2D(&box));
  DO(cuMemcpyDtoH(numbers, pitched + pitch, 5 * sizeof(int)));
  for (int i = 0; i < 5; ++i) CHECK(numbers[i] == 7 + i);
  DO(cuMemGetAddressRange(&start, &bytes, pitched + 9));
  CHECK(start == pitched && bytes == 3 * pitch);

  unsigned type = 0;
  int on = 5;
  DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 100));
  DO(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a + 100));
  CHECK(type == CU_MEMORYTYPE_DEVICE && on == 0);
  FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(size_t)got),
        CUDA_ERROR_INVALID_VALUE);
  if (is_remote) FAILS(cuMemcpyHtoD(a + 4, numbers, sizeof numbers), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuMemAlloc(&start, (size_t)1 << 46), CUDA_ERROR_OUT_OF_MEMORY);
  FAILS(cuMemAlloc(&start, 0), CUDA_ERROR_INVALID_VALUE);
  DO(cuMemFree(a));
  DO(cuMemFree(b));
  DO(cuMemFree(pitched));
  FAILS(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  DO(cuMemGetInfo(&after, &total));
  CHECK(before == after || !is_remote);
}

static void called(void* data) { ++*(int*)data; }

static void use_streams(void) {
  CUstream one, two;
  CUevent begun, over;
  CUdeviceptr memory;
  float milliseconds = -1;
  int* pinned = NULL;
  int calls = 0;
  DO(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  DO(cuStreamCreateWithPriority(&two, CU_STREAM_DEFAULT, 0));
  DO(cuEventCreate(&begun, CU_EVENT_DEFAULT));
  DO(cuEventCreate(&over, CU_EVENT_DEFAULT));
  FAILS(cuEventElapsedTime(&milliseconds, begun, over), CUDA_ERROR_INVALID_HANDLE);
  DO(cuEventQuery(over));
  DO(cuMemHostAlloc((void**)&pinned, sizeof numbers, 0));
  DO(cuMemAlloc(&memory, sizeof numbers));
  for (int i = 0; i < count; ++i) pinned[i] = 5 * i;
  DO(cuEventRecord(begun, one));
  DO(cuMemcpyHtoDAsync(memory, pinned, sizeof numbers, one));
  DO(cuMemsetD32Async(memory, 3, 2, one));
  DO(cuEventRecord(over, one));
  DO(cuStreamWaitEvent(two, over, 0));
  DO(cuStreamSynchronize(one));
  memset(pinned, 0, sizeof numbers);
  DO(cuMemcpyDtoHAsync(pinned, memory, sizeof numbers, two));
  DO(cuLaunchHostFunc(two, called, &calls));
  DO(cuStreamSynchronize(two));
  for (int i = 0; i < count; ++i) CHECK(pinned[i] == (i < 2 ? 3 : 5 * i));
  CHECK(calls == 1);
  DO(cuEventSynchronize(over));
  DO(cuEventElapsedTime(&milliseconds, begun, over));
  CHECK(milliseconds >= 0);
  DO(cuStreamQuery(one));
  DO(cuCtxSynchronize());
  DO(cuMemFreeHost(pinned));
  FAILS(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  DO(cuMemHostRegister(numbers, sizeof numbers, 0));
  DO(cuMemHostUnregister(numbers));
  DO(cuMemFree(memory));
  DO(cuEventDestroy(begun));
  DO(cuEventDestroy(over));
  DO(cuStreamDestroy(one));
  DO(cuStreamDestroy(two));
}

static void look_up(void) {
  CUresult (*get_count)(int*) = NULL;
  void* made = NULL;
  CUdriverProcAddressQueryResult found;
  int devices = 0;
  DO(cuGetProcAddress("cuDeviceGetCount", (void**)&get_count, 12000, 0, &found));
  CHECK(found == CU_GET_PROC_ADDRESS_SUCCESS && get_count != NULL && get_count(&devices) == CUDA_SUCCESS &&
        devices > 0);
  DO(cuGetProcAddress("cuMemAlloc", &made, 12000, 0, &found));
  DO(cuGetProcAddress("cuNoSuchCall", &made, 12000, 0, &found));
  CHECK(made == NULL && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const char* text = NULL;
  DO(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
  FAILS(cuGetErrorString((CUresult)4711, &text), CUDA_ERROR_INVALID_VALUE);
}

/* sum = a + b + addend, and a variable that counts the launches. */
static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 launches = 5;\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 addend, .param .u8 spare,\n"
    "                    .param .u64 count)\n{\n"
    "  .reg .u64 %p<5>; .reg .u32 %r<6>; .reg .u64 %i<6>; .reg .pred %q<2>;\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.wide.u32 %i1, %r1, %r2, 0; cvt.u64.u32 %i2, %r3; add.u64 %i1, %i1, %i2;\n"
    "  ld.param.u64 %i3, [count]; setp.ge.u64 %q1, %i1, %i3;\n"
    "  setp.eq.u64 %q0, %i1, 0; @%q0 atom.global.add.u32 %r0, [launches], 1;\n"
    "  @%q1 bra END;\n"
    "  ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; ld.param.u64 %p3, [sum]; shl.b64 %i4, %i1, 2;\n"
    "  add.u64 %p1, %p1, %i4; add.u64 %p2, %p2, %i4; add.u64 %p3, %p3, %i4;\n"
    "  ld.global.u32 %r1, [%p1]; ld.global.u32 %r2, [%p2]; add.u32 %r1, %r1, %r2;\n"
    "  ld.param.u32 %r4, [addend]; add.u32 %r1, %r1, %r4; st.global.u32 [%p3], %r1;\n"
    "END: ret;\n}\n";

static void run_kernel(void) {
  CUmodule module;
  CUfunction add;
  CUdeviceptr a, b, sum, launches;
  size_t bytes = 0, offset = 0;
  int addend = 1000, threads = 0, blocks = 0, grid = 0, block = 0;
  char spare = 9;
  unsigned long long length = count;
  DO(cuModuleLoadData(&module, ptx));
  FAILS(cuModuleGetFunction(&add, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  DO(cuModuleGetFunction(&add, module, "add"));
  DO(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
  DO(cuFuncGetParamInfo(add, 4, &offset, &bytes));
  CHECK(threads >= 256 && offset == 28 && bytes == 1);
  DO(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
  DO(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, NULL, 0, 0));
  CHECK(blocks >= 1 && grid >= 1 && block >= 32);
  DO(cuMemAlloc(&a, sizeof numbers));
  DO(cuMemAlloc(&b, sizeof numbers));
  DO(cuMemAlloc(&sum, sizeof numbers));
  for (int i = 0; i < count; ++i) numbers[i] = i;
  DO(cuMemcpyHtoD(a, numbers, sizeof numbers));
  for (int i = 0; i < count; ++i) numbers[i] = -3 * i;
  DO(cuMemcpyHtoD(b, numbers, sizeof numbers));
  void* parameters[] = {&a, &b, &sum, &addend, &spare, &length};
  for (int turn = 0; turn < 3; ++turn)
    DO(cuLaunchKernel(add, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
  addend = 0; /* what a kernel is given is read when it is launched */
  DO(cuMemcpyDtoH(got, sum, sizeof got));
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += got[i] != 1000 - 2 * i;
  CHECK(wrong == 0);
  DO(cuModuleGetGlobal(&launches, &bytes, module, "launches"));
  CHECK(bytes == 4);
  DO(cuMemcpyDtoH(got, launches, 4));
  CHECK(got[0] == 8);
  FAILS(cuLaunchKernel(add, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  DO(cuMemFree(a));
  DO(cuMemFree(b));
  DO(cuMemFree(sum));
  DO(cuModuleUnload(module));
}

int main(int argc, char** argv) {
  CUcontext context;
  int devices = 0;
  const int of_kernels = argc > 1 && strcmp(argv[1], "kernel") == 0,
            remote = argc > 1 && strcmp(argv[1], "remote") == 0;
  is_remote = getenv("WAYWISER_REMOTE") != NULL;
  FAILS(cuDeviceGetCount(&devices), CUDA_ERROR_NOT_INITIALIZED);
  const CUresult begun = cuInit(0);
  if (begun != CUDA_SUCCESS) return printf("cuInit: %d\n", (int)begun), 3;
  show_device();
  FAILS(cuCtxGetDevice(&(CUdevice){0}), CUDA_ERROR_INVALID_CONTEXT);
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  use_contexts(context);
  copy_bytes();
  use_streams();
  look_up();
  if (of_kernels) run_kernel();
  if (remote) { /* what is not forwarded, and kernels on a virtual GPU */
    CUdeviceptr managed;
    CUmodule module;
    for (int i = 0; i < 3; ++i) FAILS(cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_SUPPORTED);
    FAILS(cuModuleLoadData(&module, ptx), CUDA_ERROR_NOT_SUPPORTED);
    DO(cuCtxSynchronize());
  }
  DO(cuDevicePrimaryCtxRelease(0));
  if (problems == 0) printf("all calls\n");
  return problems != 0;
}
