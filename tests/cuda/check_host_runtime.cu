/* SPDX-License-Identifier: Apache-2.0
 * The host bench's stand-in for the CUDA runtime (tests/cuda/host) does what the manual says a GPU may do, at the
 * times that it may. Built for the bench only (CUDA=host). Ends with `N passed, N failed`. */
#include "tests/cuda/drive_host.cuh"

/* ---- Kernels ---- */

namespace {

/* In a strict build the program may do nothing wrong, even to see what comes of it. */
#ifdef HOST_STRICT
const bool WATCHED = true;
#else
const bool WATCHED = false;
#endif

/* Waits until the host has said so. */
__global__ void waiting_kernel(volatile int *word, int *to)
{
    while (*word == 0) {
        __nanosleep(100);
    }
    to[0] = 2 * *word;
}

/* Lets the next one begin, and writes long after; to[2]: whether that had begun then. */
__global__ void first_kernel(int *to, uint32_t *begun)
{
    host_let_next_begin();
    for (int i = 0; i < 4000 && atomicAdd(begun, 0) == 0; i++) {
        __nanosleep(100);
    }
    to[0] = 17;
    to[2] = (int)atomicAdd(begun, 0);
}

__global__ void second_kernel(const int *from, int *to, uint32_t *begun)
{
    atomicAdd(begun, 1);
    host_wait_for_earlier();
    to[0] = from[0] + 1;
}

/* The error is told once. */
bool fails(cudaError_t got, cudaError_t wanted)
{
    bool good = got == wanted && cudaGetLastError() == wanted && cudaGetLastError() == cudaSuccess;
    if (!good) {
        printf("  %s, and not %s\n", cudaGetErrorName(got), cudaGetErrorName(wanted));
    }
    return good;
}

/* ---- Memory ---- */

void check_memory()
{
    size_t before = 0, between = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    char *at = nullptr;
    bool good = cudaMalloc(&at, 10 << 20) == cudaSuccess && (uintptr_t)at % 256 == 0;
    cudaMemGetInfo(&between, &total);
    int host = WATCHED;
    good = good && before - between >= 10 << 20 && before - between <= 14 << 20;
    good =
        good && (WATCHED || cudaMemcpy(&host, at, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    good = good && host != 0 && cudaFree(at) == cudaSuccess && cudaFree(nullptr) == cudaSuccess;
    cudaMemGetInfo(&after, &total);
    result(
        good && after == before && total > before, "memory is taken, is not clear, and is given back");
    result(fails(cudaMalloc(&at, total), cudaErrorMemoryAllocation), "more than there is");
    at = (char *)&host;
    result(cudaMalloc(&at, 0) == cudaSuccess && !at, "no memory is no error");
}

/* Static variables of functions would be taken for shared memory of kernels (tests/cuda/host/symbols.c). */
enum { N = 30000 };
int a[N], b[N], told;

void check_copies()
{
    for (int i = 0; i < N; i++) {
        a[i] = i;
    }
    int *d = device_ints(N), *e = device_ints(N);
    bool good = cudaMemcpy(d, a, sizeof a, cudaMemcpyHostToDevice) == cudaSuccess;
    a[N - 1] = 0; /* it has been put aside */
    good = good && cudaMemcpy(e, d, sizeof a, cudaMemcpyDeviceToDevice) == cudaSuccess &&
           cudaMemcpy(b, e, sizeof a, cudaMemcpyDeviceToHost) == cudaSuccess;
    result(good && b[N - 1] == N - 1 && b[1] == 1, "copies to, on and from the device");
    good = cudaMemset(d, 255, 8 << 10) == cudaSuccess && cudaMemset(d + N - 2, 0, 4) == cudaSuccess &&
           cudaMemcpy(b, d, sizeof a, cudaMemcpyDeviceToHost) == cudaSuccess;
    result(good && b[2047] == -1 && b[2048] == 2048 && b[N - 2] == 0 && b[N - 1] == N - 1, "fills");
    good = cudaMemcpy2DAsync(d, 40, e, 20, 12, 3, cudaMemcpyDeviceToDevice) == cudaSuccess &&
           cudaMemcpy(b, d, 120, cudaMemcpyDeviceToHost) == cudaSuccess;
    result(good && b[0] == 0 && b[2] == 2 && b[10] == 5 && b[12] == 7 && b[3] == -1, "rows");
    result(fails(cudaMemcpy2DAsync(d, 8, e, 20, 12, 3, cudaMemcpyDeviceToDevice),
               cudaErrorInvalidPitchValue),
        "rows that overlap");
    cudaFree(d);
    cudaFree(e);
}

/* ---- Order ---- */

void check_asynchronous()
{
    int *p = pinned_ints(1), *d = device_ints(1), busy = 0, late = 0, right = 0;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    for (int i = 0; i < 64; i++) {
        int host = -1;
        p[0] = i;
        cudaMemcpyAsync(d, p, sizeof *p, cudaMemcpyHostToDevice, s);
        if (!WATCHED) {
            p[0] = 1000; /* too early, and sometimes the copy has it */
        }
        busy += cudaStreamQuery(s) == cudaErrorNotReady;
        cudaGetLastError();
        right += cudaStreamSynchronize(s) == cudaSuccess && cudaStreamQuery(s) == cudaSuccess;
        cudaMemcpy(&host, d, sizeof host, cudaMemcpyDeviceToHost);
        late += host == 1000;
    }
    result(right == 64 && busy > 0 && busy < 64, "a stream is sometimes still busy: %d of 64", busy);
    result(WATCHED ? late == 0 : late > 0 && late < 64,
        "a copy from pinned memory is sometimes late: %d of 64", late);
    cudaFreeHost(p);
    cudaFree(d);
    cudaStreamDestroy(s);
}

void check_events()
{
    cudaEvent_t a, b, c;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    int *d = device_ints(1000);
    float ms = -1;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    cudaEventCreateWithFlags(&c, cudaEventDisableTiming);
    bool good = cudaEventQuery(a) == cudaSuccess && cudaEventSynchronize(a) == cudaSuccess;
    result(good && fails(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle),
        "an event that was not recorded has been reached, and has no time");
    cudaMemset(d, 0, 4000);
    cudaDeviceSynchronize();
    cudaEventRecord(a, s);
    struct task t = {0, d, d, 1000, 1};
    for (int i = 0; i < 64 && good; i++) {
        good = go(add_kernel, 32, 32, 0, s, nullptr, t) == cudaSuccess;
    }
    cudaEventRecord(b, s);
    cudaEventRecord(c, s);
    int times = 0;
    while (good && cudaEventQuery(b) == cudaErrorNotReady) {
        times++;
    }
    cudaGetLastError();
    good = good && cudaEventQuery(a) == cudaSuccess && cudaEventElapsedTime(&ms, a, b) == cudaSuccess;
    result(good && ms > 0 && times > 0, "events in order, after %d questions, %g ms apart", times, ms);
    result(fails(cudaEventElapsedTime(&ms, a, c), cudaErrorInvalidResourceHandle), "one without times");
    good =
        go(add_kernel, 30, 32, 0, s, nullptr, t) == cudaSuccess && cudaEventRecord(a, s) == cudaSuccess;
    good = good && cudaEventDestroy(a) == cudaSuccess && cudaEventDestroy(b) == cudaSuccess &&
           cudaEventDestroy(c) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess;
    result(good && cudaDeviceSynchronize() == cudaSuccess, "destroyed while they are waited for");
    cudaFree(d);
}

void sleep_a_little(void *told)
{
    usleep(200000);
    __atomic_store_n((int *)told, 1, __ATOMIC_RELEASE);
}

/* One stream is held up by a function of the host; others go on, those that wait for the NULL stream do not. */
void check_streams()
{
    cudaStream_t free_one = new_stream(cudaStreamNonBlocking), bound = new_stream(cudaStreamDefault);
    int *d = device_ints(3), host = 0;
    bool good = cudaMemset(d, 0, 12) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
    good = good && cudaLaunchHostFunc(nullptr, sleep_a_little, &told) == cudaSuccess;
    good = good && go(three_kernel, 1, 1, 0, free_one, nullptr, (char)3, d, (short)4) == cudaSuccess &&
           go(three_kernel, 1, 1, 0, bound, nullptr, (char)5, d + 1, (short)6) == cudaSuccess &&
           cudaStreamSynchronize(free_one) == cudaSuccess;
    result(good && !__atomic_load_n(&told, __ATOMIC_ACQUIRE), "a stream waits for no other");
    good = cudaStreamQuery(bound) == cudaErrorNotReady && cudaGetLastError() == cudaErrorNotReady;
    good =
        good && cudaStreamSynchronize(bound) == cudaSuccess && __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    good = good && cudaMemcpy(&host, d + 1, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess;
    result(good && host == 11, "a blocking one waits for the NULL stream");
    cudaStreamDestroy(free_one);
    cudaStreamDestroy(bound);
    cudaFree(d);
}

void check_mapped()
{
    int *word = pinned_ints(2), *at = nullptr, polls = 0;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    word[0] = word[1] = 0;
    bool good = cudaHostGetDevicePointer((void **)&at, word, 0) == cudaSuccess;
    good = good && go(waiting_kernel, 1, 1, 0, s, nullptr, (volatile int *)at, at + 1) == cudaSuccess;
    for (; polls < 50 && good; polls++) {
        good = cudaStreamQuery(s) == cudaErrorNotReady;
    }
    cudaGetLastError();
    *(volatile int *)word = 21;
    good = good && cudaStreamSynchronize(s) == cudaSuccess;
    result(good && ((volatile int *)word)[1] == 42, "a kernel that waits for the host");
    cudaStreamDestroy(s);
    cudaFreeHost(word);
}

void check_overlap()
{
    cudaLaunchAttribute overlaps = {};
    overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlaps.val.programmaticStreamSerializationAllowed = 1;
    int *d = device_ints(4), host[3] = {}, early[2] = {}, right = 0;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    for (int i = 0; i < 32; i++) {
        cudaMemsetAsync(d, 0, 16, s);
        go(first_kernel, 1, 1, 0, s, nullptr, d, (uint32_t *)d + 3);
        go(second_kernel, 1, 1, 0, s, i % 2 ? &overlaps : nullptr, (const int *)d, d + 1,
            (uint32_t *)d + 3);
        cudaMemcpyAsync(host, d, sizeof host, cudaMemcpyDeviceToHost, s);
        right += host[0] == 17 && host[1] == 18;
        early[i % 2] += host[2];
    }
    result(right == 32, "dependent launches have what the first one wrote: %d of 32", right);
    result(early[0] == 0 && early[1] > 0, "and %d of 16 began before its end", early[1]);
    cudaStreamDestroy(s);
    cudaFree(d);
}

/* ---- Graphs ---- */

void check_graph()
{
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    int *d = device_ints(100), host[100];
    struct task t = {0, d, d, 100, 3};
    bool good = cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess &&
                cudaMemsetAsync(d, 0, 400, s) == cudaSuccess &&
                go(add_kernel, 2, 32, 0, s, nullptr, t) == cudaSuccess;
    t.add = 1000; /* the graph has its own */
    good = good && cudaMemcpyAsync(d + 50, d, 200, cudaMemcpyDeviceToDevice, s) == cudaSuccess &&
           cudaStreamEndCapture(s, &graph) == cudaSuccess;
    good = good && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess &&
           cudaGraphDestroy(graph) == cudaSuccess;
    cudaMemset(d, 1, 400);
    cudaDeviceSynchronize();
    for (int i = 0; i < 3; i++) {
        good = good && cudaGraphLaunch(exec, s) == cudaSuccess &&
               go(add_kernel, 2, 32, 0, s, nullptr, t) == cudaSuccess;
    }
    good = good && cudaGraphExecDestroy(exec) == cudaSuccess &&
           cudaStreamSynchronize(s) == cudaSuccess &&
           cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess;
    result(good && host[0] == 1003 && host[99] == 1003, "a graph, launched three times");
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    void *at = nullptr;
    good = fails(cudaMalloc(&at, 16), cudaErrorStreamCaptureUnsupported) &&
           fails(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated) && !graph;
    result(good, "memory is not for a thread that captures");
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    good = fails(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported) &&
           fails(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
    result(good, "a stream that captures is not asked");
    result(fails(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState) &&
               fails(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
                   cudaErrorStreamCaptureUnsupported),
        "captures that there are not");
    cudaStreamDestroy(s);
    cudaFree(d);
}

/* ---- Limits ---- */

void check_limits()
{
    struct task t = {};
    cudaFuncAttributes seen;
    int n = 0;
    const int most = host_card()->block_shared;
    result(fails(go(add_kernel, 1, 2048, 0, nullptr, nullptr, t), cudaErrorInvalidConfiguration) &&
               fails(go(add_kernel, 0, 32, 0, nullptr, nullptr, t), cudaErrorInvalidConfiguration),
        "threads and blocks");
    result(fails(go(add_kernel, 1, 32, 60000, nullptr, nullptr, t), cudaErrorInvalidValue) &&
               fails(cudaFuncSetAttribute(
                         add_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
                   cudaErrorInvalidValue) &&
               cudaFuncSetAttribute(add_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most) ==
                   cudaSuccess &&
               go(add_kernel, 1, 32, 60000, nullptr, nullptr, t) == cudaSuccess,
        "shared memory, if it is asked for");
    bool good = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, add_kernel, 32, (size_t)most) ==
                    cudaSuccess &&
                n == 1 && cudaFuncGetAttributes(&seen, add_kernel) == cudaSuccess &&
                seen.maxDynamicSharedSizeBytes == most && seen.sharedSizeBytes == 0;
    void *args[] = {&t};
    const void *code = host_kernel_address(add_kernel);
    const unsigned sms = (unsigned)host_card()->n_sms;
    good = good &&
           cudaLaunchCooperativeKernel(code, sms, 32, args, (size_t)most, nullptr) == cudaSuccess &&
           fails(cudaLaunchCooperativeKernel(code, sms + 1, 32, args, (size_t)most, nullptr),
               cudaErrorCooperativeLaunchTooLarge);
    result(good, "%u blocks together, and no more", sms);
    result(fails(cudaLaunchCooperativeKernel((const void *)check_memory, 1, 32, args, 0, nullptr),
               cudaErrorInvalidDeviceFunction) &&
               fails(cudaSetDevice(2), cudaErrorInvalidDevice),
        "what is no kernel, and no device");
    result(cudaDeviceSynchronize() == cudaSuccess, "what was launched ends");
}

/* ---- Two devices ---- */

size_t free_of(int device)
{
    size_t bytes = 0, total = 0;
    cudaSetDevice(device);
    cudaMemGetInfo(&bytes, &total);
    return bytes;
}

void *device_of_thread(void *at)
{
    cudaGetDevice((int *)at);
    return nullptr;
}

void check_what_devices_are()
{
    int n = 0, sms = 0, now = -1, of_thread = -1;
    cudaDeviceProp first = {}, second = {};
    bool good = cudaGetDeviceCount(&n) == cudaSuccess && n == 2 &&
                cudaGetDeviceProperties(&first, 0) == cudaSuccess &&
                cudaGetDeviceProperties(&second, 1) == cudaSuccess && strstr(first.name, "H100") &&
                strstr(second.name, "3090") && first.totalGlobalMem > second.totalGlobalMem;
    good = good && cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 1) == cudaSuccess &&
           sms == second.multiProcessorCount && sms != first.multiProcessorCount;
    result(good && fails(cudaGetDeviceProperties(&first, 2), cudaErrorInvalidDevice),
        "two devices, an H100 and a 3090");
    pthread_t thread;
    good = cudaSetDevice(1) == cudaSuccess &&
           pthread_create(&thread, nullptr, device_of_thread, &of_thread) == 0 &&
           pthread_join(thread, nullptr) == 0 && cudaGetDevice(&now) == cudaSuccess;
    result(good && now == 1 && of_thread == 0, "each thread has a device of its own");
    cudaSetDevice(0);
}

/* A kernel of device 1 waits meanwhile. */
void check_two_at_work()
{
    int *word = nullptr, *mine[2], host[2] = {0, 0};
    cudaStream_t streams[2];
    cudaHostAlloc(&word, sizeof *word, cudaHostAllocMapped);
    *(volatile int *)word = 0;
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        mine[i] = device_ints(4);
        streams[i] = new_stream(cudaStreamNonBlocking);
    }
    bool good = go(waiting_kernel, 1, 1, 0, streams[1], nullptr, (volatile int *)word, mine[1]) ==
                    cudaSuccess &&
                cudaSetDevice(0) == cudaSuccess;
    struct task t = {0, mine[0], mine[0], 1, 5};
    good = good && cudaMemsetAsync(mine[0], 0, 4, streams[0]) == cudaSuccess &&
           go(add_kernel, 1, 1, 0, streams[0], nullptr, t) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess && cudaStreamQuery(streams[1]) == cudaErrorNotReady;
    *(volatile int *)word = 21;
    good = good && cudaStreamSynchronize(streams[1]) == cudaSuccess;
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        good = good && cudaMemcpy(&host[i], mine[i], 4, cudaMemcpyDeviceToHost) == cudaSuccess;
        cudaStreamDestroy(streams[i]);
    }
    result(good && host[0] == 5 && host[1] == 42, "one device is waited for while the other works on");
    good = cudaFree(mine[0]) == cudaSuccess && cudaFree(mine[1]) == cudaSuccess; /* of any device */
    result(good && cudaFreeHost(word) == cudaSuccess, "memory of any device is given back");
    cudaSetDevice(0);
}

void check_what_is_apart()
{
    const size_t before = free_of(0), of_second = free_of(1);
    char *at = nullptr;
    bool good = cudaMalloc(&at, 10 << 20) == cudaSuccess && of_second - free_of(1) >= 10 << 20 &&
                free_of(0) == before;
    result(good && cudaFree(at) == cudaSuccess && free_of(1) == of_second,
        "memory is taken of one device");
    cudaSetDevice(1);
    cudaStream_t s = new_stream(0);
    cudaEvent_t of_one = nullptr, of_other = nullptr;
    cudaEventCreate(&of_other);
    cudaSetDevice(0);
    cudaEventCreate(&of_one);
    struct task t = {};
    cudaFuncAttributes seen = {};
    good = fails(go(add_kernel, 1, 1, 0, s, nullptr, t), cudaErrorInvalidResourceHandle) &&
           fails(cudaEventRecord(of_one, s), cudaErrorInvalidResourceHandle) &&
           cudaEventRecord(of_other, s) == cudaSuccess && cudaEventSynchronize(of_other) == cudaSuccess;
    result(good, "a stream is its device's");
    good = cudaFuncSetAttribute(add_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 80000) ==
               cudaSuccess &&
           cudaSetDevice(1) == cudaSuccess && cudaFuncGetAttributes(&seen, add_kernel) == cudaSuccess;
    result(
        good && seen.maxDynamicSharedSizeBytes < 80000, "what a kernel may have is set for one device");
    cudaSetDevice(0);
    cudaEventDestroy(of_one);
    cudaEventDestroy(of_other);
    cudaStreamDestroy(s);
}

} // namespace

int main()
{
    setenv("HOST_CARD", "h100,3090", 1);
    check_memory();
    check_copies();
    check_asynchronous();
    check_events();
    check_streams();
    check_mapped();
    check_overlap();
    check_graph();
    check_limits();
    check_what_devices_are();
    check_two_at_work();
    check_what_is_apart();
    result(host_memory_held() == 0 && host_pinned_held() == 0, "all memory has been given back");
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
