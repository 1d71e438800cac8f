/* SPDX-License-Identifier: Apache-2.0
 * What a program may not do, the host bench's runtime (tests/cuda/host) finds; and what is planted fails. Each of it
 * ends a program, which is this one again, started with the name of a scenario. Built for the bench only (CUDA=host).
 * Ends with `N passed, N failed`.
 * Usage: check_host_findings [SCENARIO] */
#include <sys/wait.h>

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_order.cuh"
#include "tests/cuda/drive_host.cuh"

namespace {

__global__ void trapping_kernel(int yes)
{
    if (yes) {
        host_trap("a trap");
    }
}

bool never(const void *)
{
    return false;
}

__global__ void stuck_kernel(int *)
{
    host_wait_until(never, nullptr, "what never comes");
}

/* The first thread of block 1 asks for a phase that nobody ends, and the others wait for it. */
__global__ void asking_kernel(int *)
{
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0 && blockIdx.x == 1) {
        ptx_barrier_begin(&barrier, 2);
        ptx_barriers_ready();
        ptx_arrive(&barrier);
        while (!ptx_has_ended(&barrier, 0)) {
        }
    }
    __syncthreads();
}

/* Asks for a word that the host may write, until `clocks` have gone by, or for ever. */
__global__ void word_kernel(const uint32_t *word, uint32_t *found, long long clocks)
{
    while (ptx_load(word) == 0 && (clocks == 0 || clock64() < clocks)) {
    }
    found[threadIdx.x] = ptx_load(word) + 1;
}

/* ---- What ends a program ---- */

void scenario_trap()
{
    int *d = device_ints(4), host = 0;
    go(trapping_kernel, 2, 32, 0, nullptr, nullptr, 1);
    bool good = cudaDeviceSynchronize() == cudaErrorLaunchFailure &&
                cudaGetLastError() == cudaErrorLaunchFailure &&
                cudaGetLastError() == cudaErrorLaunchFailure &&
                cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost) == cudaErrorLaunchFailure &&
                cudaFree(d) == cudaErrorLaunchFailure && cudaSetDevice(0) == cudaErrorLaunchFailure;
    printf(good ? "the error stays\n" : "the error does not stay\n");
}

void scenario_outside()
{
    int *d = device_ints(4), host[8];
    printf("%s\n", cudaGetErrorName(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost)));
}

void scenario_behind()
{
    int *d = device_ints(63), *e = device_ints(1);
    struct task t = {0, e, d + 63, 1, 0};
    go(add_kernel, 1, 1, 0, nullptr, nullptr, t);
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(cudaFree(d)));
}

void scenario_freed()
{
    int *d = device_ints(63);
    struct task t = {0, d, d, 1, 0};
    cudaFree(d);
    go(add_kernel, 1, 1, 0, nullptr, nullptr, t);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

void scenario_nowhere()
{
    go(three_kernel, 1, 1, 0, nullptr, nullptr, (char)2, (int *)nullptr, (short)2);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%s\n", cudaGetErrorName(cudaMemset(nullptr, 0, 4)));
}

/* As a wild pointer in the program's own code. */
void scenario_host()
{
    *(volatile int *)device_ints(4) = 1;
    int *d = device_ints(4);
    cudaFree(d);
    *(volatile int *)d = 1;
}

void scenario_twice()
{
    int *d = device_ints(63);
    cudaFree(d);
    printf("%s\n", cudaGetErrorName(cudaFree(d)));
}

void scenario_stuck()
{
    go(stuck_kernel, 1, 32, 0, nullptr, nullptr, (int *)nullptr);
    printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(nullptr)));
}

void scenario_asks()
{
    go(asking_kernel, 2, 64, 0, nullptr, nullptr, (int *)nullptr);
    cudaError_t result = cudaErrorNotReady;
    while (result == cudaErrorNotReady) {
        usleep(1000);
        result = cudaStreamQuery(nullptr);
    }
    printf("%s\n", cudaGetErrorName(result));
}

void *write_late(void *word)
{
    sleep(3);
    *(volatile uint32_t *)word = 1;
    return nullptr;
}

/* The host ends the first kernel after a while, and the clock the second. */
void scenario_late()
{
    uint32_t *const words = (uint32_t *)pinned_ints(3);
    uint32_t *const found = (uint32_t *)device_ints(64);
    uint32_t host[2] = {};
    pthread_t writer;
    words[0] = words[1] = 0;
    go(word_kernel, 1, 64, 0, nullptr, nullptr, (const uint32_t *)words, found, 0LL);
    pthread_create(&writer, nullptr, write_late, words);
    cudaMemcpy(host, found, 4, cudaMemcpyDeviceToHost);
    pthread_join(writer, nullptr);
    go(word_kernel, 1, 64, 0, nullptr, nullptr, (const uint32_t *)words + 1, found, 10000000000LL);
    cudaMemcpy(host + 1, found + 63, 4, cudaMemcpyDeviceToHost);
    printf("%u %u\n", host[0], host[1]);
}

void call_the_runtime(void *)
{
    int *d = device_ints(4);
    printf("%s\n", d ? "memory" : "no memory");
}

void scenario_callback()
{
    cudaLaunchHostFunc(nullptr, call_the_runtime, nullptr);
    cudaDeviceSynchronize();
}

void scenario_stream()
{
    cudaStream_t s = new_stream(0);
    cudaStreamDestroy(s);
    printf("%s\n", cudaGetErrorName(cudaStreamQuery(s)));
}

/* Memory of device 0 for a kernel of device 1, which ends that device and no other. */
void scenario_device()
{
    int *d = device_ints(4), *e = nullptr;
    struct task t = {0, d, d, 1, 0};
    cudaSetDevice(1);
    printf("%s\n", cudaGetErrorName(cudaMemset(d, 0, 4)));
    go(add_kernel, 1, 1, 0, nullptr, nullptr, t);
    const cudaError_t results[] = {cudaDeviceSynchronize(), cudaMalloc(&e, 4), cudaSetDevice(0),
        cudaMalloc(&e, 4), cudaMemset(e, 0, 4), cudaFree(d)};
    for (cudaError_t r : results) {
        printf("%d ", (int)r);
    }
}

/* Memory, a launch, its end: the calls that planted failures hit. */
void scenario_plain()
{
    int *d = nullptr, *e = nullptr, host = 0, n = 0;
    cudaError_t results[9] = {cudaGetDeviceCount(&n), cudaMalloc(&d, 4096), cudaMalloc(&e, 4096)};
    if (!results[0] && d && e) {
        results[3] = cudaMemset(d, 0, 4);
        results[4] = go(three_kernel, 1, 1, 0, nullptr, nullptr, (char)1, d, (short)1);
        results[5] = go(three_kernel, 1, 1, 0, nullptr, nullptr, (char)2, e, (short)2);
        results[6] = cudaStreamQuery(nullptr);
        results[7] = cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost);
        results[8] = cudaFree(e);
    }
    for (cudaError_t r : results) {
        printf("%d ", (int)(r == cudaErrorNotReady ? cudaSuccess : r));
    }
    printf("= %d\n", host);
}

struct scenario {
    const char *name;
    void (*run)();
};

const struct scenario scenarios[] = {{"trap", scenario_trap}, {"outside", scenario_outside},
    {"behind", scenario_behind}, {"freed", scenario_freed}, {"nowhere", scenario_nowhere},
    {"host", scenario_host}, {"twice", scenario_twice}, {"stuck", scenario_stuck},
    {"asks", scenario_asks}, {"late", scenario_late}, {"callback", scenario_callback},
    {"device", scenario_device}, {"stream", scenario_stream}, {"plain", scenario_plain}};

/* Runs the program again; its exit status and what it said. */
int run_again(const char *scenario, const char *variable, const char *value, char said[4096])
{
    char name[] = "/tmp/check_host_findings.XXXXXX", set[600], command[1400];
    snprintf(set, sizeof set, "%s='%s'", variable ? variable : "NOTHING", value ? value : "");
    int fd = mkstemp(name);
    char self[512] = "";
    if (fd < 0 || readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        return -1;
    }
    snprintf(command, sizeof command, "%s '%s' %s >%s 2>&1", set, self, scenario, name);
    int status = system(command);
    ssize_t n = read(fd, said, 4095);
    said[n > 0 ? n : 0] = 0;
    close(fd);
    unlink(name);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void check_again(
    const char *scenario, const char *variable, const char *value, int status, const char *words)
{
    char said[4096];
    int got = run_again(scenario, variable, value, said);
    bool good = got == status && strstr(said, words);
    result(good, "%s, %s=%s: %d, `%s`", scenario, variable ? variable : "", value ? value : "", status,
        words);
    if (!good) {
        printf("  it ended with %d and said: %s\n", got, said);
    }
}

void check_findings()
{
    check_again("trap", nullptr, nullptr, 3, "the error stays");
    check_again("trap", nullptr, nullptr, 3, "trapping_kernel");
    check_again(
        "outside", nullptr, nullptr, 3, "32 bytes at offset 0 of device memory 1, which has 16");
    check_again("outside", nullptr, nullptr, 3, "cudaErrorInvalidValue");
    check_again("behind", nullptr, nullptr, 3, "device memory 1");
    check_again("freed", nullptr, nullptr, 3, "after it was freed");
    check_again("nowhere", nullptr, nullptr, 3, "no memory of the device");
    check_again("nowhere", nullptr, nullptr, 3, "three_kernel");
    check_again("nowhere", nullptr, nullptr, 3, "cudaErrorIllegalAddress\ncudaErrorIllegalAddress");
    check_again("trap", "HOST_FINDINGS", "1", 0, "the error stays");
    check_again("trap", "HOST_FINDINGS", "2", 3, "1 findings, and 2 were wanted");
    check_again("host", nullptr, nullptr, 3, "the last one ended the program");
    check_again("freed", nullptr, nullptr, 3, "cudaErrorIllegalAddress");
    check_again("twice", nullptr, nullptr, 3, "free already");
    check_again("stuck", nullptr, nullptr, 3, "cudaErrorLaunchFailure");
    check_again("stuck", nullptr, nullptr, 3, "stuck_kernel");
    check_again("asks", nullptr, nullptr, 3,
        "asking_kernel(int*): block 1 thread 0 asks in vain for an mbarrier's phase at 00800000 of "
        "shared");
    check_again("late", nullptr, nullptr, 0, "2 1");
    check_again("callback", nullptr, nullptr, 3, "no memory");
    check_again("stream", nullptr, nullptr, 3, "cudaErrorInvalidResourceHandle");
    check_again("device", "HOST_CARD", "h100,3090", 3, "memory 1 of device 0 in a stream of device 1");
    check_again("device", "HOST_CARD", "h100,3090", 3, "an access to memory 1 of device 0 by device 1");
    check_again("device", "HOST_CARD", "h100,3090", 3, "700 700 0 0 0 0 ");
    check_again("plain", nullptr, nullptr, 0, "0 0 0 0 0 0 0 0 0 = 2");
}

void check_counts()
{
    char name[] = "/tmp/check_host_findings.XXXXXX", said[4096] = "";
    int fd = mkstemp(name);
    check_again("plain", "HOST_COUNT_CALLS", name, 0, "= 2");
    bool good =
        fd >= 0 && read(fd, said, sizeof said - 1) > 0 && strncmp(said, "any 9\nlaunch 2\n", 15) == 0;
    result(good && strstr(said, "\ncudaMalloc 2\n") && strstr(said, "\ncudaEventQuery 0\n"),
        "calls are counted");
    close(fd);
    unlink(name);
}

void check_faults()
{
    check_again("plain", "HOST_FAULT", "cudaMalloc:2", 0, "0 0 2 0 0");
    check_again("plain", "HOST_FAULT", "cudaMalloc:1+", 0, "0 2 2 0");
    check_again("plain", "HOST_FAULT", "cudaMemset:1:cudaErrorNotSupported", 0, "0 0 0 801 0");
    check_again("plain", "HOST_FAULT", "cudaStreamQuery:1:cudaErrorIllegalAddress", 0,
        "0 0 0 0 0 0 700 700 700 = 0");
    check_again("plain", "HOST_FAULT", "any:1", 0, "100 0 0 0");
    check_again("plain", "HOST_FAULT", "device:3=gone", 0, "0 0 46 0 0 0 0 0 0 = 0");
    check_again("plain", "HOST_FAULT", "launch:1=lost", 0, "0 0 0 0 0 0 0 0 0 = 0");
    check_again("plain", "HOST_FAULT", "launch:2=hangs", 3, "0 0 0 0 0 0 0 719 719 = 0");
    check_again("plain", "HOST_FAULT", "device:5=gone", 0, "0 0 0 0 46 46 46 46 46 = 0");
    check_again("plain", "HOST_FAULT", "memory=3000000", 0, "0 0 0 0");
    check_again("plain", "HOST_FAULT", "memory=1000", 0, "0 2 2 ");
    check_again("plain", "HOST_FAULT", "cudaMallocs:1", 2, "cudaMallocs:1 is none");
    check_again("plain", "HOST_CARD", "none", 0, "100 100 100");
    check_again("plain", "HOST_CARD", "t4", 0, "0 0 0 0 209 209 0 0 0");
    check_again("plain", "HOST_CARD", "4711", 2, "there is no 4711");
    check_again("plain", "HOST_CARD", "h100,4711", 2, "there is no 4711");
    check_counts();
}

} // namespace

int main(int argc, char **argv)
{
    for (const struct scenario &s : scenarios) {
        if (argc > 1 && strcmp(argv[1], s.name) == 0) {
            s.run();
            return 0;
        }
    }
    check_findings();
    check_faults();
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
