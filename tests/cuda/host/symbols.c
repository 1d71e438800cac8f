/* SPDX-License-Identifier: Apache-2.0
 * What the program's own table of symbols tells of a kernel: its name, and the variables that `__shared__` made. On
 * the host these are static variables of the kernel's function, and so their names begin with the kernel's:
 * kernel(args) is _Z6kernel4args, its variable `part` _ZZ6kernel4argsE4part. Static variables of functions that kernels
 * call belong to all kernels of their file, whether the compiler put those functions into the kernels or not. */
#include "tests/cuda/host/scheduler.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

char *__cxa_demangle(const char *name, char *to, size_t *bytes, int *status);

static const char *image; /* of the program's file */
static const Elf64_Sym *table;
static const char *names;
static int n_symbols;
static const Elf64_Shdr *sections;
static uintptr_t base; /* where the program was put */

/* Also the symbol by which `base` is found. */
void host_symbols_mark(void);
void host_symbols_mark(void)
{
}

static void *fail(const char *why)
{
    fprintf(stderr, "host bench: its own symbols can't be read: %s (was it stripped?)\n", why);
    abort();
}

/* As the program begins: later it may have given up the right to read its own file (server/cage). */
__attribute__((constructor)) static void read_table(void)
{
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail("no file");
    }
    image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (image == MAP_FAILED) {
        fail("no memory");
    }
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    sections = (const Elf64_Shdr *)(image + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type == SHT_SYMTAB) {
            table = (const Elf64_Sym *)(image + sections[i].sh_offset);
            n_symbols = (int)(sections[i].sh_size / sizeof *table);
            names = image + sections[sections[i].sh_link].sh_offset;
        }
    }
    for (int i = 0; i < n_symbols; i++) {
        const char *name = names + table[i].st_name;
        if (strcmp(name, "host_symbols_mark") == 0) {
            base = (uintptr_t)host_symbols_mark - table[i].st_value;
        } else if (ELF64_ST_BIND(table[i].st_info) == STB_WEAK && strncmp(name, "_ZZ", 3) == 0) {
            fprintf(
                stderr, "host bench: %s is one for all files (a kernel that is not static?)\n", name);
            abort();
        }
    }
    if (!base) {
        fail("no table");
    }
}

/* A variable that the program can write to, and so neither a constant nor a function's address. */
static bool is_variable(const Elf64_Sym *s)
{
    return ELF64_ST_TYPE(s->st_info) == STT_OBJECT && s->st_shndx < SHN_LORESERVE &&
           sections[s->st_shndx].sh_flags & SHF_WRITE;
}

/* The symbol of a function at this address, and the first symbol of its file. */
static int find_function(const void *code, int *file)
{
    *file = 0;
    for (int i = 0, at = 0; i < n_symbols; i++) {
        if (ELF64_ST_TYPE(table[i].st_info) == STT_FILE) {
            at = i;
        }
        if (ELF64_ST_TYPE(table[i].st_info) == STT_FUNC &&
            base + table[i].st_value == (uintptr_t)code) {
            *file = ELF64_ST_BIND(table[i].st_info) == STB_LOCAL ? at : -1;
            return i;
        }
    }
    return -1;
}

/* The length of the function's name in that of a static variable of it; 0: it is none. */
static size_t owner_of(const char *name)
{
    if (strncmp(name, "_ZZ", 3) != 0) {
        return 0;
    }
    /* The last E that a length follows ends the function's name. */
    for (size_t n = strlen(name); n > 3; n--) {
        if (name[n - 1] == 'E' && name[n] >= '1' && name[n] <= '9') {
            return n - 1;
        }
    }
    return 0;
}

/* Kernels are named so. Of a name in a namespace, _ZN12_GLOBAL__N_1L11many_kernelILi4EEEv4args, the last part with a
 * length counts, of others, _ZL10all_kernel4args, the first. */
static bool is_named_kernel(const char *mangled)
{
    static const char suffix[] = "_kernel";
    const size_t n_suffix = sizeof suffix - 1;
    const bool is_nested = strncmp(mangled, "_ZN", 3) == 0;
    const char *at = mangled + strlen("_Z") + is_nested, *end = at;
    do {
        at += *at == 'L';
        if (*at < '1' || *at > '9') {
            break;
        }
        char *name;
        const unsigned long n = strtoul(at, &name, 10);
        at = end = name + n;
    } while (is_nested);
    return (size_t)(end - mangled) > n_suffix && strncmp(end - n_suffix, suffix, n_suffix) == 0;
}

static bool is_kernels(const char *variable, const char *kernel, int from, int to)
{
    const size_t n = owner_of(variable);
    if (n == 0) {
        return false;
    }
    /* _ZZ and the rest of the kernel's name behind _Z, without the L of a static function. */
    if (strncmp(variable + 3, kernel + 2, n - 3) == 0 && strlen(kernel + 2) == n - 3) {
        return true;
    }
    for (int i = from; i < to; i++) { /* another kernel's? */
        const char *name = names + table[i].st_name;
        if (ELF64_ST_TYPE(table[i].st_info) == STT_FUNC && is_named_kernel(name) &&
            strncmp(name + 2, variable + 3, n - 3) == 0 && strlen(name + 2) == n - 3) {
            return false;
        }
    }
    return true; /* of a function that kernels call */
}

static void add_variable(struct kernel_facts *f, const Elf64_Sym *s)
{
    f->shared = realloc(f->shared, (size_t)(f->n_shared + 1) * sizeof *f->shared);
    struct shared_variable *v = &f->shared[f->n_shared++];
    v->at = (unsigned char *)(base + s->st_value);
    v->bytes = s->st_size;
    v->place = (f->shared_bytes + 127) / 128 * 128;
    f->shared_bytes = v->place + v->bytes;
}

static struct kernel_facts *learn(const void *code)
{
    int file, at = find_function(code, &file);
    if (at < 0) {
        fail("a kernel is not in it");
    }
    struct kernel_facts *f = calloc(1, sizeof *f);
    const char *kernel = names + table[at].st_name;
    int from = file < 0 ? 0 : file + 1, to = from;
    while (to < n_symbols && (file < 0 || ELF64_ST_TYPE(table[to].st_info) != STT_FILE)) {
        to++;
    }
    f->code = code;
    f->name = __cxa_demangle(kernel, NULL, NULL, NULL);
    f->name = f->name ? f->name : strdup(kernel);
    for (int i = from; i < to; i++) {
        const char *name = names + table[i].st_name;
        if (is_variable(&table[i]) && is_kernels(name, kernel, from, to)) {
            const bool its_own = strncmp(name + 3, kernel + 2, strlen(kernel + 2)) == 0;
            if (strstr(name, "host_needs_90a")) {
                f->needs_groups |= its_own;
            } else if (strstr(name, "host_needs_family")) {
                f->needs_moves |= its_own;
            } else if (strstr(name, "host_in_pairs")) {
                f->in_pairs |= its_own;
            } else {
                add_variable(f, &table[i]);
            }
        }
    }
    return f;
}

const struct kernel_facts *kernel_facts(const void *code)
{
    enum { SLOTS = 4096 };
    static struct kernel_facts *known[SLOTS];
    unsigned at = (unsigned)((uintptr_t)code >> 4) % SLOTS;
    while (known[at] && known[at]->code != code) {
        at = (at + 1) % SLOTS;
    }
    if (!known[at]) {
        known[at] = learn(code);
    }
    return known[at];
}
