/* SPDX-License-Identifier: Apache-2.0
 * A stack of its own for each thread of a kernel, and the change from one to another: a few stores and loads, without
 * the system calls that ucontext makes for signals. */
#ifndef TESTS_CUDA_HOST_FIBER_H
#define TESTS_CUDA_HOST_FIBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a fiber goes on: the top of its stack, under which lie the registers that a call keeps. */
typedef void *fiber_place;

/* Keeps where this one is in *from, and goes on at `to`. */
void fiber_switch(fiber_place *from, fiber_place to);

#if defined(__x86_64__)
enum { FIBER_SAVED = 6 }; /* rbp, rbx, r12 to r15 */
__asm__(".text\n.weak fiber_switch\n.type fiber_switch,@function\nfiber_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size fiber_switch,.-fiber_switch\n");
#elif defined(__aarch64__)
enum { FIBER_SAVED = 19 }; /* x19 to x29, d8 to d15; then x30, where it goes on */
__asm__(".text\n.weak fiber_switch\n.type fiber_switch,%function\nfiber_switch:\n"
        "sub sp,sp,#160\n"
        "stp x19,x20,[sp,#0]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
        "stp x27,x28,[sp,#64]\nstp d8,d9,[sp,#80]\nstp d10,d11,[sp,#96]\nstp d12,d13,[sp,#112]\n"
        "stp d14,d15,[sp,#128]\nstp x29,x30,[sp,#144]\n"
        "mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
        "ldp x19,x20,[sp,#0]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
        "ldp x27,x28,[sp,#64]\nldp d8,d9,[sp,#80]\nldp d10,d11,[sp,#96]\nldp d12,d13,[sp,#112]\n"
        "ldp d14,d15,[sp,#128]\nldp x29,x30,[sp,#144]\n"
        "add sp,sp,#160\nret\n.size fiber_switch,.-fiber_switch\n");
#else
#error "the host bench knows how x86-64 and aarch64 keep registers"
#endif

/* A fiber that begins with body() when it is first changed to; body never returns. */
static inline fiber_place fiber_new(void *stack, size_t bytes, void (*body)(void))
{
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)63;
#if defined(__x86_64__)
    top -= 64; /* the call that body believes it was */
    void **at = (void **)(top - 8) - FIBER_SAVED - 1;
    memset(at, 0, sizeof *at * FIBER_SAVED);
    at[FIBER_SAVED] = (void *)(uintptr_t)body;
#else
    void **at = (void **)(top - 160);
    memset(at, 0, 160);
    at[FIBER_SAVED] = (void *)(uintptr_t)body;
#endif
    return at;
}

#endif
