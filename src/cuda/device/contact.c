/* SPDX-License-Identifier: Apache-2.0
 * The runtime tells each of many causes by one of few errors; the driver's version, the kernel's module and the right
 * to open the device tell them apart. */
#include "cuda/device/contact.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#ifndef CUDA_SYSTEM_ROOT /* a build for a posed GPU has a folder in its place */
#define CUDA_SYSTEM_ROOT ""
#endif

#define MODULE_VERSION CUDA_SYSTEM_ROOT "/sys/module/nvidia/version"
#define CONTROL_NODE "/dev/nvidiactl"
#define FOR_CONTAINERS "a container gets it with NVIDIA's container toolkit and --gpus all"

enum { VERSION_TEXT = 64 };

/* The version of the driver's module in the kernel, which a container shares with its host; "": there is none. */
static void read_module(char version[VERSION_TEXT])
{
    char *text = NULL;
    size_t bytes;
    version[0] = 0;
    if (file_read_any(MODULE_VERSION, VERSION_TEXT - 1, &text, &bytes, NULL) == UTTER_OK) {
        text[strcspn(text, "\n")] = 0;
        snprintf(version, VERSION_TEXT, "%s", text);
    }
    memory_free(text);
}

/* The first driver for this major version of CUDA, which takes all its minor ones; 0: not known. */
static int least_driver(int major)
{
    return major == 11 ? 450 : major == 12 ? 525 : major == 13 ? 580 : 0;
}

static void why_old(char *why, size_t size)
{
    const int driver = least_driver(CUDART_VERSION / 1000);
    char module[VERSION_TEXT], needed[48] = "";
    int knows = 0;
    read_module(module);
    if (cudaDriverGetVersion(&knows) != cudaSuccess) {
        knows = 0;
    }
    if (driver) {
        snprintf(needed, sizeof needed, ": driver %d or later is needed", driver);
    }
    if (knows) {
        snprintf(why, size, "NVIDIA's driver%s%s is for CUDA %d.%d, this program for %d.%d%s",
            *module ? " " : "", module, knows / 1000, knows % 1000 / 10, CUDART_VERSION / 1000,
            CUDART_VERSION % 1000 / 10, needed);
    } else if (*module) {
        snprintf(why, size,
            "NVIDIA's driver %s runs, but its libcuda.so.1 is not here: " FOR_CONTAINERS, module);
    } else {
        snprintf(why, size, "NVIDIA's driver is not installed%s", needed);
    }
}

/* The driver is here and offers nothing, or may not. */
static void why_none(char *why, size_t size, const char *otherwise)
{
    char module[VERSION_TEXT];
    const int fault = file_device_fault(CUDA_SYSTEM_ROOT CONTROL_NODE);
    read_module(module);
    if (*module && fault == ENOENT) {
        snprintf(why, size, CONTROL_NODE " is not here: " FOR_CONTAINERS);
    } else if (*module && fault) {
        snprintf(why, size,
            CONTROL_NODE " may not be opened (%s): " FOR_CONTAINERS ", a user by its group",
            strerror(fault));
    } else {
        snprintf(why, size, "%s", otherwise);
    }
}

static void why_busy(char *why, size_t size, const struct cuda_contact *contact)
{
    const char *name = *contact->name ? contact->name : "the GPU";
    if (contact->mode == cudaComputeModeProhibited) {
        snprintf(why, size, "%s is in prohibited mode: nvidia-smi -c DEFAULT opens it to all", name);
    } else if (contact->mode != cudaComputeModeDefault) {
        snprintf(why, size,
            "%s is in exclusive mode and another process has it: end that one, or share the GPU by "
            "nvidia-smi -c DEFAULT",
            name);
    } else {
        snprintf(why, size,
            "%s is busy or not available: nvidia-smi tells who has it, and whether it is in MIG mode "
            "without an instance",
            name);
    }
}

/* The kinds of GPU that the program was compiled for, as the Makefile says, and what it calls this one: 9.0 and
 * families have instructions that only code of their own kind may use. */
static void why_no_code(char *why, size_t size, const struct cuda_contact *contact)
{
    const int capability = contact->capability, major = capability / 10;
    const char *kind = capability == 90 ? "a" : major > 9 ? "f" : "";
    snprintf(why, size,
        "this program has code for %s and none for %s (%d.%d): build it with CUDA_ARCH=%d%s",
        CUDA_CODES, *contact->name ? contact->name : "the GPU", major, capability % 10,
        *kind == 'f' ? 10 * major : capability, kind);
}

void cuda_contact_why(char *why, size_t size, cudaError_t result, const struct cuda_contact *contact)
{
    switch (result) {
    case cudaErrorInsufficientDriver:
        why_old(why, size);
        break;
    case cudaSuccess:
    case cudaErrorNoDevice:
        why_none(why, size,
            "the driver offers none: CUDA_VISIBLE_DEVICES hides it, or it is in MIG mode and has no "
            "instance (nvidia-smi -L lists what there is)");
        break;
    case cudaErrorOperatingSystem:
    case cudaErrorNotPermitted:
        why_none(why, size, "the system does not let this process open it");
        break;
    case cudaErrorDevicesUnavailable:
        why_busy(why, size, contact);
        break;
    case cudaErrorNoKernelImageForDevice:
        why_no_code(why, size, contact);
        break;
    case cudaErrorUnsupportedPtxVersion:
        snprintf(why, size,
            "the driver cannot translate this program's portable code: driver %d or later is needed",
            least_driver(CUDART_VERSION / 1000));
        break;
    case cudaErrorSystemDriverMismatch:
        snprintf(why, size,
            "the driver's library and its module in the kernel are of two versions: restart the "
            "machine");
        break;
    case cudaErrorSystemNotReady:
        snprintf(why, size, "NVSwitch waits for its service: systemctl start nvidia-fabricmanager");
        break;
    case cudaErrorCompatNotSupportedOnDevice:
        snprintf(why, size,
            "a package cuda-compat stands in front of the driver, and this GPU does not take it: "
            "remove "
            "it, and install driver %d or later",
            least_driver(CUDART_VERSION / 1000));
        break;
    default:
        snprintf(
            why, size, "%s (nvidia-smi tells whether the driver works)", cudaGetErrorString(result));
        break;
    }
}
