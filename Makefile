# utter: one Makefile, no recursion. `make help` lists the targets.
#
# Every configuration builds in its own folder, so variants never mix and nothing begins with `clean`:
#   make                          build/release/utter, build/release/libutter.a and libutter.so
#   make SAN=address,undefined    build/san-address-undefined/...
#   make CUDA=0                   never look for nvcc
#   make CUDA=host                the GPU's code built for a posed GPU on the host (tests/cuda/host): build/host/...
#   make CUDA=host-strict         the same, with every access to memory watched: slower
#   make CUDA=host COVERAGE=1     the same, and the lines of src/cuda that run are counted (tools/cuda_coverage)
#   make CUDA_ARCH=90a            for one kind of GPU only: compiles many times faster
#   make PORTABLE=amd64           for any glibc >= 2.31, all outside libraries inside (packaging/sysroot): build/portable-amd64/...
#   make PORTABLE=arm64           the same for 64-bit Arm, compiled across; DEBIAN=1: with all as Debian 12 has it
# Knobs: CC, CFLAGS, LDFLAGS, WERROR=1, CUDA=0, CUDA_ARCH, SAN=..., PREFIX, LIBDIR, DESTDIR, ONLY='words' (of check).

# `make fuzz` needs clang, and a build that counts what each input reaches.
ifneq ($(filter fuzz,$(MAKECMDGOALS)),)
CC      := clang
SAN     := fuzzer-no-link,address,undefined
endif

# Compiled in a folder that packaging/sysroot makes, with what Debian calls this compiler and its tools.
ifneq ($(PORTABLE),)
TRIPLET := $(or $(patsubst amd64,x86_64,$(filter amd64,$(PORTABLE))),$(patsubst arm64,aarch64,$(filter arm64,$(PORTABLE))))-linux-gnu
SYSROOT := $(abspath build/sysroot/$(PORTABLE)$(if $(DEBIAN),-debian))
# Nothing of the folders that the compiler came with: their glibc is another.
CC      := $(TRIPLET)-gcc --sysroot=$(SYSROOT) -B$(SYSROOT)/usr/lib/$(TRIPLET) -static-libgcc -nostdinc \
           $(patsubst %,-isystem %,$(shell $(TRIPLET)-gcc -print-file-name=include) $(SYSROOT)/usr/include/$(TRIPLET) $(SYSROOT)/usr/include)
# The same bytes wherever the tree lies: a build id is a hash of names too.
CC      += -ffile-prefix-map=$(CURDIR)=.
AR      := $(TRIPLET)-ar
LD      := $(TRIPLET)-ld
OBJCOPY := $(TRIPLET)-objcopy
endif
OBJCOPY ?= objcopy

comma   := ,
CONFIG  := $(if $(PORTABLE),portable-$(PORTABLE),$(if $(SAN),san-$(subst $(comma),-,$(SAN)),$(or $(addsuffix $(if $(COVERAGE),-coverage),$(filter host host-strict,$(CUDA))),release)))
B       := build/$(CONFIG)
# What knows of no GPU is the same in a build for a posed one.
R       := build/$(if $(filter host%,$(CONFIG)),release,$(CONFIG))
PREFIX  ?= /usr/local

# The GPU backend is built where nvcc is found, but not into the sanitized builds. The CUDA runtime is linked
# statically and finds the driver by itself when the program runs, so one program runs with and without a GPU.
NVCC    ?= nvcc
# Older ones, as many distributions have them, know neither all kinds below nor how to compress their code.
NVCC_NEEDED := 13.0
NVCC_IS := $(if $(SAN)$(CUDA),,$(if $(shell command -v $(NVCC) 2>/dev/null),$(or \
           $(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9.]*[0-9]\).*/\1/p'),unknown)))
NVCC_OLD := $(if $(NVCC_IS),$(if $(filter unknown,$(NVCC_IS)),yes,$(shell printf '%s\n' $(NVCC_NEEDED) $(NVCC_IS) | sort -VC || echo yes)))
$(if $(NVCC_OLD),$(if $(filter clean help install uninstall,$(MAKECMDGOALS)),,$(info note: $(shell command -v $(NVCC)) is of CUDA $(NVCC_IS), and code \
for GPUs needs $(NVCC_NEEDED): this builds the program for the CPU (NVCC=FILE names another one; CUDA=0 is quiet))))
CUDA    ?= $(if $(NVCC_IS),$(if $(NVCC_OLD),0,1),0)
# 10.0 and 10.3, 11.0, 12.0 and 12.1 by their families (f): a family has instructions that portable code has not.
CUDA_KINDS := 80 86 87 89 90a 100f 110f 120f
CUDA_ARCH ?= $(CUDA_KINDS)
ifeq ($(CUDA),1)
CUDA_HOME  := $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v $(NVCC))))
CUDA_FLAGS := -DUTTER_CUDA -isystem $(CUDA_HOME)/include
CUDA_LIBS  := $(CUDA_HOME)/lib64/libcudart_static.a -lrt
# Machine code for each kind; and, where there are several, portable code of the first and the last for all others.
CUDA_PORTABLE := $(if $(word 2,$(CUDA_ARCH)),$(patsubst %a,%,$(patsubst %f,%,$(firstword $(CUDA_ARCH)) $(lastword $(CUDA_ARCH)))))
CUDA_CODE  := $(foreach a,$(CUDA_ARCH),-gencode=arch=compute_$(a),code=sm_$(a)) \
              $(foreach a,$(CUDA_PORTABLE),-gencode=arch=compute_$(a),code=compute_$(a))
# Products and sums are fused (-fmad) as the kernels' checks against the CPU allow; functions of one variable stay exact.
NVCC_FLAGS := -std=c++17 -O3 -lineinfo --compress-mode=size -Iinclude -Isrc -I. $(CUDA_CODE) \
              $(if $(WERROR),-Werror all-warnings) \
              -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-pthread
CUDA_COMPILE = $(NVCC) $(NVCC_FLAGS)
else ifneq ($(filter host host-strict,$(CUDA)),)
# Kernels as C++ for the host. Nothing is fused that the source does not fuse, and what instructions the host has for
# that does not change a bit. Static shared memory is found by names (tests/cuda/host/symbols.c), and so nothing is merged.
STRICT     := $(filter host-strict,$(CUDA))
CUDA_FLAGS := -DUTTER_CUDA -DUTTER_CUDA_HOST -DCUDA_PATIENCE_S=3600 -DCUDA_MOST_NAP_S=0.0001 -DCUDA_WARM_ROWS=1 -DCUDA_WARM_SIZES=1 -DCUDA_TRIAL_FRAMES=1 -DCUDA_TRIAL_WAYS=1 $(if $(STRICT),-DHOST_STRICT) -isystem tests/cuda/host/include
CUDA_LIBS  := -lstdc++
HOST_FMA   := $(if $(shell grep -m1 -w avx2 /proc/cpuinfo 2>/dev/null | grep -w fma),-mavx2 -mfma)
# The frame kernels' builds are most of what there is to compile, and run as fast when less is done to them.
HOST_O      = $(if $(STRICT),-O2,$(if $(findstring /builds/,$@),-O1,-O2))
CUDA_COMPILE = $(CXX) -x c++ -std=c++17 $(HOST_O) -g1 $(HOST_FMA) $(CUDA_FLAGS) -Iinclude -Isrc -I. -Wall -Wextra $(if $(WERROR),-Werror) \
              -Wno-unused-parameter -Wno-unknown-pragmas -Wno-unused-function -Wno-maybe-uninitialized -Wno-missing-field-initializers -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti \
              -fno-threadsafe-statics -fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-gnu-unique -fno-var-tracking \
              $(if $(STRICT),-include tests/cuda/host/strict/strict_calls.h -fsanitize=thread --param=tsan-distinguish-volatile=1 -fno-builtin-memset -fno-builtin-memcpy -fno-tree-loop-distribute-patterns \
              -fno-tree-vectorize -fno-tree-slp-vectorize -fno-tree-loop-im)
endif
# A backend for GPUs is built, for real ones or for a posed one.
GPU        := $(filter 1 host host-strict,$(CUDA))

WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wwrite-strings
CFLAGS  ?= -O2 -g
# -g1: a sanitizer names lines; where variables live it does not ask, and gcc takes half of its time to find that out.
# -fno-sanitize-recover: what a sanitizer finds ends the program, so that the test fails.
# -ffp-contract=off: a product and a sum are rounded as written; kernels that want a fused step say so.
ALL_CFLAGS  = -std=c11 $(WARN) $(if $(WERROR),-Werror) -D_GNU_SOURCE -Iinclude -Isrc -I. -fvisibility=hidden -fPIC -pthread \
              -ffp-contract=off -fno-math-errno $(CFLAGS) $(if $(SAN),-fno-omit-frame-pointer -g1 $(if $(findstring fuzzer,$(SAN)),-O2,-O1) $(WATCH))
WATCH    = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
# A build id would be a hash of debug information too, which is not given away and knows the folder.
ALL_LDFLAGS := -pthread $(LDFLAGS) $(if $(PORTABLE),-Wl$(comma)--build-id=none) $(if $(COVERAGE),--coverage) $(if $(SAN),-fsanitize=$(SAN))

# Debian's archives where it ships them for the machine that is compiled for; the rest by name.
static   = $(or $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
# What the archives of libsndfile and libopusenc need is named where those are archives.
SNDFILE_LIBS := $(if $(PORTABLE),-lvorbisenc -lvorbis -lFLAC -logg -lopus -lmpg123 -lmp3lame)
LIBS    := $(call static,jansson) $(call static,utf8proc) $(call static,pcre2-8) $(call static,unibreak) $(call static,sonic) -lsndfile -lsoxr $(SNDFILE_LIBS) $(CUDA_LIBS) -lm -ldl

# Where a header of the outside libraries is not there, the first line says what to type.
NEEDS   := jansson utf8proc pcre2 wordbreak sndfile soxr xxhash portaudio event2/event nettle/sha2 sonic lame/lame FLAC/stream_encoder curl/curl \
           archive libxml/parser cmark ebur128
find_headers = for h in $(1); do printf '\#define PCRE2_CODE_UNIT_WIDTH 8\n\#include <stdio.h>\n\#include <%s.h>\n' $$h; done | \
           $(CC) -E -isystem $(SYSROOT)/usr/include/libxml2 - >/dev/null 2>&1
LACKS   := $(if $(filter clean help uninstall,$(MAKECMDGOALS)),,$(shell $(call find_headers,$(NEEDS)) || \
           for one in $(NEEDS); do $(call find_headers,$$one) || echo $$one.h; done))
ifneq ($(LACKS),)
$(error the headers $(LACKS) are not here: type `tools/packages build`, which installs them)
endif

# The kernels take longest to compile: they come first, so that none of them is left alone at the end.
KERNELS := $(wildcard src/cpu/kernels/*.c)
LIB_SRC := $(KERNELS) $(filter-out $(KERNELS) src/cuda/%,$(wildcard src/*/*.c src/*/*/*.c))
ifneq ($(GPU),)
LIB_SRC += $(wildcard src/cuda/*/*.c) $(if $(filter 1,$(CUDA)),,$(filter-out $(if $(STRICT),,tests/cuda/host/strict/%),$(wildcard tests/cuda/host/*.c tests/cuda/host/*/*.c)))
CUDA_SRC := $(wildcard src/cuda/*/*.cu src/cuda/*/*/*.cu)
endif
CLI_SRC := $(wildcard cli/*.c cli/*/*.c)
SERVER_SRC := $(wildcard server/*/*.c server/*/*/*.c store/*.c)
BOOK_SRC := $(wildcard book/*.c book/*/*.c)
JOB_SRC := $(wildcard job/*.c job/*/*.c)
TEST_SRC := $(wildcard tests/*/test_*.c)
TOOL_SRC := $(wildcard tools/*.c)
MAKER_SRC := $(wildcard tools/maker/*.c)
EXAMPLE_SRC := $(wildcard examples/*.c)

VERSION := $(shell sed -n 's/.*UTTER_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' include/utter.h | paste -sd.)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
SHARED  := $(B)/libutter.so.$(MAJOR)

# The sources that are built for a kind of GPU.
of_gpu  = $(filter src/cuda/% tests/cuda/% src/api/utter_model.c,$(1))
LIB_OBJ := $(patsubst %.c,$(B)/%.o,$(call of_gpu,$(LIB_SRC))) $(CUDA_SRC:%.cu=$(B)/%.o) \
           $(patsubst %.c,$(R)/%.o,$(filter-out $(call of_gpu,$(LIB_SRC)),$(LIB_SRC)))
CLI_OBJ := $(CLI_SRC:%.c=$(R)/%.o)
# The server, with the store that it shares with job/, stands on the library's header, src/base and src/effects, of which it has its own copy: the archive exports utter_* only.
SERVER_OBJ := $(SERVER_SRC:%.c=$(R)/%.o)
BOOK_OBJ := $(BOOK_SRC:%.c=$(R)/%.o)
JOB_OBJ := $(JOB_SRC:%.c=$(R)/%.o)
BASE_OBJ := $(filter $(R)/src/base/% $(R)/src/effects/%,$(LIB_OBJ))
SERVER_LIBS := $(call static,event_core) $(call static,nettle) $(call static,mp3lame) \
               $(call static,vo-aacenc) -lopusenc -lopus -lFLAC
$(SERVER_OBJ): INC := -I$(SYSROOT)/usr/include/opus
$(BOOK_OBJ) $(B)/tests/book/%.o: INC := -isystem $(SYSROOT)/usr/include/libxml2
BOOK_LIBS := $(call static,cmark)
TESTS   := $(TEST_SRC:tests/%.c=$(B)/tests/%)
# A sanitizer of addresses makes speech ten times slower, and that is all in the kernels. Tests of kernels, codec and engine
# and the goldens have watched ones; the program, and the tests of what is done with speech, those of the plain build.
PLAIN_KERNELS := $(if $(findstring address,$(SAN)),$(if $(findstring fuzzer,$(SAN)),,$(KERNELS:%.c=build/release/%.o)))
SPEAKS_OBJ := $(if $(PLAIN_KERNELS),$(filter-out $(KERNELS:%.c=$(B)/%.o),$(LIB_OBJ)) $(PLAIN_KERNELS),$(LIB_OBJ))
WATCHED := $(if $(PLAIN_KERNELS),$(B)/tests/golden/utter)
TESTS   += $(WATCHED)
TOOLS   := $(TOOL_SRC:tools/%.c=$(B)/tools/%)
EXAMPLES := $(EXAMPLE_SRC:examples/%.c=$(B)/examples/%)

.PHONY: FORCE all help bench-kernels check check-book check-faults check-malformed replays check-cuda-faults chosen chosen-alone clients day soak page check-cuda check-cuda-as check-kernels frame-tools mutants mutants-cuda mutants-drawn fuzz autobahn framing framing-proxies json-suite simulate tokenizer-linear test test-programs checkpoints oracle tools examples install uninstall wheel tarball deb deb-portable check-arm outside-s3 languages clean
.SECONDARY:

all: $(B)/utter $(B)/libutter.a $(if $(SAN)$(STRICT),,$(SHARED)) tools examples ## the program, the library, tools and examples

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

# A stamp holds the flags, so that changing them rebuilds.
build/%/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' > $@
FORCE:

define compile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(INC) $(ISA) $(LEAN) $(FOR_GPU) $(TOLD) $(COUNTED) -MMD -MP -c $< -o $@
endef
$(B)/%.o: %.c $(B)/flags
	$(compile)
ifneq ($(R),$(B))
$(R)/%.o: %.c $(R)/flags
	$(compile)
endif
ifneq ($(PLAIN_KERNELS),)
# Whether they are as their sources are the plain build knows.
.PHONY: plain-kernels
plain-kernels:
	@$(MAKE) -s SAN= $(PLAIN_KERNELS)
$(PLAIN_KERNELS): plain-kernels ;
endif
$(B)/src/cuda/%.o $(B)/tests/cuda/%.o $(B)/src/api/utter_model.o $(B)/tools/word_times.o: FOR_GPU := $(CUDA_FLAGS)
# What the program says of the code that it has, and a posed GPU looks up; and the posed system's files, where the bench runs.
$(addprefix $(B)/,src/cuda/device/contact.o tests/cuda/host/runtime/card.o): TOLD := \
  $(if $(filter host%,$(CUDA)),-DCUDA_CODES='"$(CUDA_KINDS)"' -DCUDA_SYSTEM_ROOT='"posed"',-DCUDA_CODES='"$(CUDA_ARCH)"')
$(B)/src/cuda/%.o: COUNTED := $(if $(COVERAGE),--coverage -fno-inline -DHOST_COUNTED)
$(patsubst %.c,$(B)/%.o,$(call of_gpu,$(LIB_SRC))) $(B)/tools/word_times.o: $(B)/cuda_flags

$(B)/cuda_flags: FORCE
	@mkdir -p $(@D); echo '$(CUDA_COMPILE) $(CUDA_FLAGS) $(CUDA_ARCH)' | cmp -s - $@ || echo '$(CUDA_COMPILE) $(CUDA_FLAGS) $(CUDA_ARCH)' > $@
# The bench's headers stand where the system's do, which -MMD leaves out.
$(B)/%.o: %.cu $(B)/cuda_flags
	@mkdir -p $(@D)
	$(CUDA_COMPILE) $(COUNTED) $(if $(filter host%,$(CUDA)),-MD,-MMD) -MP -MF $(@:.o=.d) -c $< -o $@

$(R)/server/front/page.o: $(wildcard server/front/page/*)

# The kernels' unrolled loops are five sixths of a build's time; a third of that is where their variables live.
KERNEL_LEAN := $(shell $(CC) -fno-var-tracking -Werror -x c -c /dev/null -o /dev/null 2>/dev/null && echo -fno-var-tracking)
$(R)/src/cpu/kernels/%.o $(B)/tests/cpu/tile_emulation.o: LEAN = $(KERNEL_LEAN)

# One body, one file for each instruction set; which one runs is decided at run time.
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$(R)/src/cpu/kernels/avx2.o: ISA := -mavx2 -mfma -mf16c -fno-tree-reassoc
$(R)/src/cpu/kernels/avxvnni.o: ISA := -mavx2 -mfma -mf16c -mavxvnni -fno-tree-reassoc
$(R)/src/cpu/kernels/amx.o: ISA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mamx-tile -mamx-bf16 -mamx-int8 -mfma -fno-tree-reassoc
$(R)/src/cpu/kernels/vnni.o: ISA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -fno-tree-reassoc
$(R)/src/cpu/kernels/avx512.o: ISA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -fno-tree-reassoc
# What this machine cannot run, a sanitizer cannot watch: such sets are compiled without it, in a third of the time.
set_is_here = $(shell grep -qw $(1) /proc/cpuinfo && echo yes)
ifneq ($(SAN),)
$(R)/src/cpu/kernels/amx.o: WATCH := $(if $(call set_is_here,amx_tile),$(WATCH))
$(R)/src/cpu/kernels/avxvnni.o: WATCH := $(if $(call set_is_here,avx_vnni),$(WATCH))
endif
endif

ifneq ($(filter aarch64%,$(shell $(CC) -dumpmachine)),)
$(R)/src/cpu/kernels/dotprod.o: ISA := -march=armv8.2-a+dotprod
$(R)/src/cpu/kernels/i8mm.o: ISA := -march=armv8.2-a+dotprod+i8mm
endif

# For programs that share it: bound to the next versions by its soname, to nothing but utter.h by the map. Where outside
# libraries come as archives, programs use those; here they are shared too, which is what systems expect.
SHARED_LIBS := -ljansson -lutf8proc -lpcre2-8 -lunibreak -lsonic -lsndfile -lsoxr $(SNDFILE_LIBS) $(CUDA_LIBS) -lm -ldl
link_shared = $(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libutter.so.$(MAJOR) -Wl,--version-script=src/api/utter.map \
              -Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,relro $(1) $(LIB_OBJ) $(SHARED_LIBS) -o $@
$(SHARED): $(LIB_OBJ) src/api/utter.map
	$(call link_shared)

# Everything of the library with all its names, for the tests; and the archive that exports utter_* only.
$(B)/internal.a: $(LIB_OBJ)
$(B)/internal.a $(B)/server.a $(B)/program.a:
	@rm -f $@; $(AR) rcsT $@ $^
WATCHED_LIB := $(WATCHED:utter=libutter.a)
$(B)/libutter.a: $(SPEAKS_OBJ)
$(WATCHED_LIB): $(LIB_OBJ)
$(B)/libutter.a $(WATCHED_LIB):
	@mkdir -p $(@D); rm -f $@; $(LD) -r -o $(@D)/utter_all.o $^ && $(OBJCOPY) --localize-hidden $(@D)/utter_all.o && $(AR) rcs $@ $(@D)/utter_all.o

# What it opens by name lies beside it; and what the library needs beside that.
$(if $(PORTABLE),$(B)/utter): ALL_LDFLAGS += -Wl,-rpath,'$$ORIGIN/../lib'
$(if $(PORTABLE),$(SHARED)): ALL_LDFLAGS += -Wl,-rpath,'$$ORIGIN'
$(B)/utter $(WATCHED): $(CLI_OBJ) $(SERVER_OBJ) $(BOOK_OBJ) $(JOB_OBJ) $(BASE_OBJ)
$(B)/utter: $(B)/libutter.a
$(WATCHED): $(WATCHED_LIB)
$(B)/utter $(WATCHED):
	$(CC) $(ALL_LDFLAGS) $^ $(SERVER_LIBS) $(BOOK_LIBS) $(LIBS) -o $@

tools: $(TOOLS) ## the model maker and other tools in C
$(B)/tools/%: $(B)/tools/%.o $(B)/internal.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@
# The model maker stands on headers of the library only.
$(B)/tools/make_model: $(B)/tools/make_model.o $(MAKER_SRC:%.c=$(B)/%.o)
	$(CC) $(ALL_LDFLAGS) $^ $(call static,jansson) -lm -o $@

checkpoints: build/checkpoints/made ## the small random checkpoints that tests use, in build/checkpoints
# Any build of the maker writes the same bytes, so the stamp hangs on its sources.
build/checkpoints/made: tests/fixtures/checkpoints $(wildcard tests/fixtures/vocabulary/*) tools/make_model.c \
                        $(MAKER_SRC) | $(B)/tools/make_model
	@sed -e 's/#.*//' $< | while read -r name shape variant options; do \
	    [ -z "$$name" ] || $(B)/tools/make_model $$shape $$variant build/checkpoints/$$name $$options || exit 1; \
	done
	@touch $@

# Times the pool's loops from outside (docs/log/cpu-two-cores.md).
$(B)/tools/bench/serial: ALL_LDFLAGS += -Wl,--wrap=pool_run

examples: $(EXAMPLES) ## the example programs
$(B)/examples/%: $(B)/examples/%.o $(B)/libutter.a
	$(CC) $(ALL_LDFLAGS) $^ $(LIBS) -o $@

ORACLE := build/oracle/venv/bin/python
oracle: all checkpoints ## goldens from the official package, compared with the committed ones and verified by the engine; ONLY='ties snake': some
	@tools/oracle/install
	@nice -n 10 $(ORACLE) tools/oracle/make_goldens.py $(ONLY)

# tests/ROOM/test_TOPIC.c is a cmocka program of its own, linked with all internal names. A call whose __wrap_NAME the
# test or what stands beside it has goes there: so the n-th malloc can fail (tests/support.c).
OBJECTS_FIRST = $(filter %.o,$^) $(filter %.a,$^)
WRAP = $$(nm $(filter %.o,$^) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')
# Outside libraries make theirs as ever, also where they are archives: our objects are linked, with --wrap, before they come.
ifneq ($(PORTABLE),)
define link_test
	$(CC) -r -nostdlib $(WRAP) $(OBJECTS_FIRST) -o $@.wrapped
	$(CC) $(ALL_LDFLAGS) $@.wrapped $(1) $(LIBS) -lcmocka -o $@
endef
else
define link_test
	$(CC) $(ALL_LDFLAGS) $(WRAP) $(OBJECTS_FIRST) $(1) $(LIBS) -lcmocka -o $@
endef
endif
$(B)/tests/%: $(B)/tests/%.o $(B)/tests/support.o $(B)/internal.a
	$(call link_test)
$(filter $(B)/tests/reading/% $(B)/tests/words/%,$(TESTS)): $(PLAIN_KERNELS)
# The kernels on tiles of a machine that has none.
$(addprefix $(B)/tests/cpu/,test_kern_integer test_packed test_vocoder_tiles): $(B)/tests/cpu/tile_emulation.o
$(B)/server.a: $(SERVER_OBJ)
$(B)/tests/server/%: $(B)/tests/server/%.o $(B)/server.a $(B)/internal.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) $^ $(SERVER_LIBS) $(LIBS) -lcmocka -o $@
# Of these the n-th allocation, or file call, can fail.
FAILING := $(addprefix $(B)/tests/server/,test_coders test_jobs test_keys test_lacking test_link_bounds test_port test_wholes)
$(FAILING): $(B)/tests/support.o
$(B)/tests/dialects/%: $(B)/tests/dialects/%.o $(B)/server.a $(B)/internal.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) $^ $(SERVER_LIBS) $(LIBS) -lcmocka -o $@

# The program's rooms for tests of them, linked as the program is: names of the library's own may come twice.
$(B)/program.a: $(filter-out $(R)/cli/main.o,$(CLI_OBJ)) $(SERVER_OBJ) $(BOOK_OBJ) $(JOB_OBJ) $(BASE_OBJ)
$(filter $(B)/tests/book/% $(B)/tests/job/% $(B)/tests/cli/% %/server/test_serve %/server/test_serve_end,$(TESTS)): $(B)/tests/%: $(B)/tests/%.o $(B)/tests/support.o $(B)/program.a $(B)/libutter.a
	$(call link_test,$(SERVER_LIBS) $(BOOK_LIBS))

# tests/fuzz/fuzz_NAME.c gives any bytes to a parser. `make check` replays tests/fuzz/corpus/NAME; `make
# fuzz` looks for new inputs for FUZZ_SECONDS a target and keeps them in build/fuzz/NAME.
FUZZ_SECONDS ?= 60
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
REPLAYS  := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=$(B)/tests/fuzz/replay_%)
FUZZERS  := $(FUZZ_SRC:tests/%.c=$(B)/tests/%)
PARSERS  := $(filter $(addprefix $(R)/src/,base/% weights/% text/% script/% effects/% reading/cut% reading/marks% reading/source% audio/% voice/%),$(LIB_OBJ))
$(B)/tests/fuzz/replay_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(PARSERS) $(B)/server.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) $^ $(SERVER_LIBS) $(LIBS) -o $@
$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(PARSERS) $(B)/server.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) -fsanitize=fuzzer $^ $(SERVER_LIBS) $(LIBS) -o $@

replays: $(REPLAYS)
fuzz: $(FUZZERS) ## looks for inputs that break a parser, into tests/fuzz/ledger; FUZZ_SECONDS=60 for each, or FUZZ_RUNS=10000000
	@FUZZ_RUNS=$(FUZZ_RUNS) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/look $(foreach f,$(FUZZERS),$(if $(ONLY),$(call named,$(f)),$(f)))

# The front end, its worker and libevent in a world that a seed decides: what they call the system for, the linker gives them
# from tests/sim; and a library that makes sound without a model.
SIM_OBJ  := $(patsubst %.c,$(B)/%.o,$(wildcard tests/sim/*.c))
$(B)/tests/sim/simulate: $(SIM_OBJ) $(filter $(R)/src/base/% $(R)/src/effects/%,$(LIB_OBJ)) $(B)/server.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) $^ $(SERVER_LIBS) $(LIBS) -o $@

check-faults: checkpoints $(B)/tests/api/test_faults $(B)/tests/sim/simulate ## every allocation and file call of the library fails, once and for good; and calls of the server about sockets, and its allocations, in SEEDS=10000 lives each
	@EVERY=1 $(B)/tests/api/test_faults
	@$(B)/tests/sim/simulate --failing --seeds $(or $(SEEDS),10000)
	@$(B)/tests/sim/simulate --lacking --seeds $(or $(SEEDS),10000)

autobahn: all $(B)/tests/server/echo ## the WebSocket beside Autobahn's test suite, in a bare Debian 11: ten minutes
	@tests/server/autobahn $(B)

json-suite: $(B)/tests/base/json_suite ## the verdicts of JSONTestSuite; SUITE=its folder test_parsing
	@$< $(or $(SUITE),$(error SUITE=FOLDER/test_parsing of github.com/nst/JSONTestSuite))

tokenizer-linear: $(B)/tests/text/linear ## what a million characters of one kind cost the tokenizer, against a hundred thousand; COUNTED=1: in instructions (apt-get install valgrind; half an hour)
	@$(if $(COUNTED),tests/text/count_linear) $< voice/builtin

framing: $(B)/tests/server/framing ## where requests end: a million mutated streams beside h11; STREAMS=1000000 SEED=1
	@[ -x build/h11/bin/python ] || { python3 -m venv build/h11 && build/h11/bin/pip install -q h11; }
	@build/h11/bin/python tests/server/framing.py $<
	@build/h11/bin/python tests/server/framing.py $< --streams $(or $(STREAMS),1000000) $(or $(SEED),1)

framing-proxies: $(B)/tests/server/framing ## the ambiguous requests as nginx and HAProxy take them, and what they send on (apt-get install nginx-light haproxy)
	@python3 tests/server/beside_proxies.py $< $(or $(NGINX),nginx) $(or $(HAPROXY),haproxy)

simulate: $(B)/tests/sim/simulate ## lives of the server in a simulated world; SEEDS=1000000, FROM=1 (tests/sim)
	@$< --from $(or $(FROM),1) --seeds $(or $(SEEDS),10000)

# What the transcripts of the program play on.
$(B)/tests/cli/libportaudio.so.2: $(B)/tests/cli/portaudio.o
	$(CC) $(ALL_LDFLAGS) -shared $^ -o $@
# What the server's memory fails by, and what is held of it.
$(B)/tests/server/lacks.so $(B)/tests/server/held.so: %.so: %.o
	$(CC) $(ALL_LDFLAGS) -shared $^ -o $@
LOADED := $(B)/tests/cli/libportaudio.so.2 $(B)/tests/server/lacks.so $(B)/tests/server/held.so

test-programs: $(TESTS) $(REPLAYS) $(B)/tests/sim/simulate $(LOADED)

# With ONLY, just the programs that have one of its words in their path.
named  = $(if $(strip $(foreach word,$(ONLY),$(findstring $(word),$(1)))),$(1))
CHOSEN := $(foreach program,$(TESTS) $(REPLAYS),$(if $(ONLY),$(call named,$(program)),$(program)))
# Words that may name a script, which runs the program; without a word all of them do.
of_scripts = $(if $(1),$(foreach word,$(1),$(if $(findstring /test_,$(word)),,$(word))),all)
chosen-alone: $(CHOSEN)
chosen: all $(CHOSEN) $(B)/tests/sim/simulate $(LOADED)
check: chosen checkpoints ## all checks that need no official package
	@tools/run_tests $(B) $(ONLY)

check-malformed: checkpoints ## every beginning of every fixture, and each of its bits turned, to every parser, with sanitizers
	@$(MAKE) -s CC=clang SAN=fuzzer-no-link,address,undefined CUDA=0 replays # the build that `make fuzz` has
	@tests/fuzz/malformed build/san-fuzzer-no-link-address-undefined

check-book: all checkpoints ## books at full size, and 50 runs of three kinds that are killed: half an hour
	KILLS=50 CHAPTERS=5000 BOMB_MB=2000 tests/book/run $(B)

bench-kernels: $(B)/tests/cpu/test_kern_all ## nanoseconds a call of every CPU kernel in every instruction set that runs here
	@$< --bench $(ONLY)

# Programs of their own, which need a GPU: single kernels, the codec, and whole frames against the CPU.
CUDA_CHECKS := $(basename $(addprefix $(B)/,$(if $(GPU),$(wildcard tests/cuda/check_*.c) tests/cuda/check_primitives.cu)))
HOST_CHECKS := $(basename $(addprefix $(B)/,$(if $(filter host%,$(CUDA)),$(wildcard tests/cuda/check_host*.cu))))
CUDA_MODELS ?= tiny06-custom_voice tiny17-base unusual ties nan-scores eos-sometimes
$(CUDA_CHECKS) $(HOST_CHECKS): $(B)/tests/%: $(B)/tests/%.o $(B)/tests/cuda/pose.o $(B)/internal.a
	$(CC) $(ALL_LDFLAGS) $(WRAP) $^ $(LIBS) -o $@
# Nothing is asked of the frame kernel as a card that has none.
COMMENT := \#
WITH_FRAME := $(if $(filter-out h100 h200 b200 5090,$(CUDA_AS)),$(COMMENT))
check-cuda: $(CUDA_CHECKS) checkpoints $(addprefix build/checkpoints/,wide layers follows-small) ## the GPU backend against the CPU backend; needs a GPU
	$(B)/tests/cuda/check_steps
	$(B)/tests/cuda/check_wide
	$(B)/tests/cuda/check_vocoder --frames 110 build/checkpoints/tiny06-base
	$(B)/tests/cuda/check_listen build/checkpoints/tiny06-base
	$(B)/tests/cuda/check_state $(addprefix build/checkpoints/,tiny06-base unusual)
	$(WITH_FRAME)$(B)/tests/cuda/check_frame build/checkpoints/wide
	$(B)/tests/cuda/check_soak $(if $(WITH_FRAME),-w graph) -n 3000 build/checkpoints/wide
	$(B)/tests/cuda/check_cuda $(addprefix build/checkpoints/,$(CUDA_MODELS))
	$(B)/tests/cuda/check_many $(addprefix build/checkpoints/,$(firstword $(CUDA_MODELS)) tiny17-base unusual)
	$(B)/tests/cuda/check_many -L -l 8 build/checkpoints/layers
	$(WITH_FRAME)$(B)/tests/cuda/check_many -w frame -l 3 -d build/checkpoints/wide
	for n in 1 2 9 64; do $(B)/tests/cuda/check_look -l $$n -n 12 -r 300 -t build/checkpoints/follows || exit 1; done
	$(B)/tests/cuda/check_weigh $(addprefix build/checkpoints/,tiny06-custom_voice tiny17-base unusual layers)
	$(B)/tests/cuda/check_weigh -r 700 build/checkpoints/layers
	$(B)/tests/cuda/check_lost build/checkpoints/tiny06-custom_voice
	$(WITH_FRAME)$(B)/tests/cuda/check_weigh -w frame build/checkpoints/wide
	$(B)/tests/cuda/check_weigh -q 8 build/checkpoints/wide
	for q in 8 4; do for n in 1 5 8 9 32 64; do $(B)/tests/cuda/check_sentences -q $$q -l $$n -n 60 voice/builtin || exit 1; done; done
	$(WITH_FRAME)for n in 1 2 5 8 9; do $(B)/tests/cuda/check_look -w frame -l $$n -n 12 -r 300 -t build/checkpoints/follows-small || exit 1; done
CARDS := $(shell sed -n 's|^    {"\([a-z0-9-]*\)", .*|\1|p' src/cuda/device/cards.h | grep -v t4)
check-cuda-as: checkpoints ## all of that as each card of src/cuda/device/cards.h, or CARD=NAME: a posed one, and a GPU that does no more
	@$(MAKE) -s CUDA=host host-programs build/checkpoints/wide-small build/checkpoints/least-small build/checkpoints/follows
	@tools/check_host $(foreach card,$(or $(CARD),$(CARDS)),--as $(card))
	@[ ! -e /dev/nvidiactl ] || for card in $(or $(CARD),$(CARDS)); do echo "$$card:"; CUDA_AS=$$card $(MAKE) -s check-cuda || exit 1; done
check-kernels: ## registers, spills and shared memory of each kernel: KINDS='86 120f'; fails where a kernel of every frame spills or setmaxnreg does nothing
	@for kind in $(or $(KINDS),86 120f); do nice -n 15 tools/bench/kernels.py build . $$kind build/kernels/$$kind && \
	  tools/bench/kernels.py table build/kernels/$$kind || exit 1; done
check-primitives: $(B)/tests/cuda/check_primitives ## each instruction of the GPU's code against plain C; needs a GPU
	$<
# What watches accesses to memory, checked by itself.
WATCH_SRC := $(wildcard tests/cuda/strict/*.c tests/cuda/host/strict/*.c)
$(B)/tests/cuda/check_strict: $(WATCH_SRC) $(wildcard tests/cuda/strict/*.h tests/cuda/host/strict/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g1 -Wall -Wextra $(if $(WERROR),-Werror) -D_GNU_SOURCE -DHOST_STRICT -I. -Isrc -Iinclude $(WATCH_SRC) -lm -o $@
# The same without a GPU: tools/check_host has the list.
host-programs: all $(CUDA_CHECKS) $(HOST_CHECKS) $(B)/tests/cuda/check_strict
HOST_LIST = $(if $(findstring quick,$@),--quick) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(COVERAGE),--build build/host-coverage)
check-cuda-host check-cuda-host-quick: checkpoints $(addprefix build/checkpoints/,wide-small layers-small wider-small follows-small ties-small ends-small \
  least-small tiny-small long-heads hollow06 hollow17)
	@$(MAKE) -s CUDA=host $(if $(ONLY),$$(tools/check_host --needs $(HOST_LIST) $(ONLY)),host-programs build/checkpoints/tiny06-q8)
	$(if $(COVERAGE),@find build/host-coverage -name '*.gcda' -delete)
	@tools/check_host $(HOST_LIST) $(ONLY)
	$(if $(COVERAGE),@tools/cuda_coverage --least $(if $(findstring quick,$@),90,99) build/host-coverage)
check-cuda-host: ## the GPU's code on a posed GPU, no card needed: an hour; SEEDS=20: instead, 200 orders of threads
check-cuda-host-quick: ## a sample of it: minutes

# The posed GPU as one that fails, and as one that is opened again and again.
check-cuda-faults: checkpoints build/checkpoints/wide-small ## each EVERY-th call of the runtime fails (EVERY=5), a server's GPU too; 20 opens of each kind: hours
	@$(MAKE) -s CUDA=host host-programs
	@tests/cuda/check_matrix build/host build/checkpoints/tiny06-base $(or $(EVERY),5)
	@tests/cuda/check_service build/host build/checkpoints/tiny06-custom_voice
	@build/host/tests/cuda/check_faults -n 20 - build/checkpoints/tiny06-base
	@build/host/tests/cuda/check_faults -n 20 -k frame - build/checkpoints/wide-small
	@build/host/tests/cuda/check_faults -n 20 -w q8 - build/checkpoints/wide-small

# The frame kernel: beside the CPU backend on a GPU, and its parts alone.
FRAME_TOOLS := $(B)/tests/cuda/frame_on_gpu $(B)/tools/bench/frame_parts
$(FRAME_TOOLS): $(B)/%: $(B)/%.o $(B)/internal.a
	$(CXX) $(ALL_LDFLAGS) $^ $(LIBS) -o $@
frame-tools: $(FRAME_TOOLS) ## programs that compare and time the frame kernel on a GPU
build/checkpoints/wide: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 1 --predictor-layers 2 --codebooks 3 --text-rows 2000
# Long prompts of it take the kernel of all layers (prompt/layers.h).
build/checkpoints/layers: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 3 --predictor-layers 2 --text-rows 2000
build/checkpoints/tiny06-q8: build/checkpoints/made | $(B)/utter
	$(B)/utter quantize -q -m build/checkpoints/tiny06-custom_voice --weights q8 -o $@
# The released shapes, of which only memory is reckoned.
build/checkpoints/hollow06 build/checkpoints/hollow17: build/checkpoints/hollow%: $(B)/tools/make_model
	$< $(if $(filter 06,$*),0.6b,1.7b) custom_voice $@ --hollow
# The same talkers for a posed GPU, with a small codec.
SMALL_CODEC := --codebooks 3 --vocoder-width 32 --vocoder-inner 48 --vocoder-layers 2 --latent 48 --code-width 32 --conv-width 64
build/checkpoints/wide-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 1 --predictor-layers 2 --text-rows 2000 $(SMALL_CODEC)
build/checkpoints/follows-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 2 --predictor-layers 2 --text-rows 2000 --craft follows $(SMALL_CODEC)
build/checkpoints/layers-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 3 --predictor-layers 2 --text-rows 2000 $(SMALL_CODEC)
build/checkpoints/wider-small: $(B)/tools/make_model
	$< 1.7b custom_voice $@ --layers 1 --predictor-layers 2 --text-rows 2000 $(SMALL_CODEC)
build/checkpoints/ties-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 1 --predictor-layers 2 --text-rows 2000 --craft ties $(SMALL_CODEC)
build/checkpoints/ends-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 1 --predictor-layers 2 --text-rows 2000 --craft eos-first $(SMALL_CODEC)
build/checkpoints/long-heads: $(B)/tools/make_model
	$< tiny06 custom_voice $@ --head-dim 256 --predictor-head-dim 192
# The least of all.
build/checkpoints/tiny-small: $(B)/tools/make_model
	$< tiny06 custom_voice $@ --layers 1 --predictor-layers 1 --codebooks 3 --vocoder-width 16 --vocoder-inner 16 --vocoder-layers 1 \
	    --latent 16 --code-width 16 --conv-width 32
# The least that the kernel of all layers takes.
build/checkpoints/least-small: $(B)/tools/make_model
	$< 0.6b custom_voice $@ --layers 3 --inner 512 --heads 4 --kv-heads 2 --predictor-width 256 --predictor-inner 512 \
	    --predictor-heads 4 --predictor-kv-heads 2 --predictor-layers 2 --text-rows 2000 $(SMALL_CODEC)

day: $(B)/utter ## 24 hours' worth of turns through every dialect, 1,000 contexts opened and dropped: nothing grows, no lane is left
	@python3 tests/dialects/day.py $(B)/utter

soak: $(B)/utter $(B)/tests/server/held.so ## days of clients and faults of every kind, mixed: all are served or told, memory, descriptors and threads stay; SECONDS=259200, SEED=1, RATE=6
	@python3 tests/server/soak.py $(B)/utter $(or $(SECONDS),259200) $(or $(SEED),1) $(or $(RATE),6)

page: $(B)/utter checkpoints ## the pages at / and /docs in Chromium: what is heard, contrast, keyboard; pictures in build/page
	@mkdir -p build/page && python3 tests/page/look.py $(B)/utter build/checkpoints build/page

CLIENTS := build/clients/venv/bin/python
OLDER   := build/clients/wyoming-1.7.2
OLD_OPENAI := build/clients/openai-1.40
clients: $(B)/utter ## the server with clients of others, as PyPI has them, and curl, ffmpeg
	@[ -x $(CLIENTS) ] || python3 -m venv build/clients/venv
	@$(CLIENTS) -m pip install -q -r tests/clients/requirements.txt
	@$(CLIENTS) tests/clients/test_clients.py $(B)/utter
	@$(CLIENTS) -W ignore tests/clients/heard.py $(B)/utter 5 2>/dev/null # 20: minutes
	@python3 tests/dialects/first_sound.py $(B)/utter
	@[ -x $(OLDER)/bin/python ] || { python3 -m venv $(OLDER) && $(OLDER)/bin/pip install -q wyoming==1.7.2; }
	@$(OLDER)/bin/python tests/clients/wyoming_clients.py $(B)/utter # as Home Assistant pins it
	@[ -x $(OLD_OPENAI)/bin/python ] || { python3 -m venv $(OLD_OPENAI) && $(OLD_OPENAI)/bin/pip install -q openai==1.40.0 'httpx<0.28'; }
	@$(OLD_OPENAI)/bin/python tests/clients/openai_clients.py $(B)/utter # the oldest that many still have

outside-s3: $(B)/utter ## utter job with the object store of another project (moto of PyPI), which checks signatures by its own code
	@[ -x build/s3/venv/bin/python ] || python3 -m venv build/s3/venv
	@build/s3/venv/bin/python -m pip install -q -r tests/job/requirements.txt
	@build/s3/venv/bin/python tests/job/outside_s3.py $(B)/utter

languages: $(SHARED) ## the examples in Rust, Go and for Node: installs the tools, builds them, compares with C
	@tools/packages languages && tests/languages/run $(B)

mutants: ## small wrong changes of tests/mutants, each of which must fail a test
	@tools/mutants $(ONLY)
mutants-drawn: ## SEED=1: 40 small wrong changes a room that nobody chose, and which of them no test notices; ONLY=server: hours
	@[ -x build/tree-sitter/bin/python ] || { python3 -m venv build/tree-sitter && build/tree-sitter/bin/pip install -q tree-sitter tree-sitter-c; }
	@PATH="$(CURDIR)/build/tree-sitter/bin:$$PATH" nice -n 10 python3 tools/draw_mutants --seed $(or $(SEED),1) $(ONLY)
# Each fault rebuilds what it touches and runs a check of it; HELD=1: those that were held back.
mutants-cuda: ## the same of the GPU's code on a posed GPU (tests/cuda/faults): hours
	@tools/mutants --list tests/cuda/$(if $(HELD),more_)faults --build 'tests/cuda/fault_check --make {tests}' \
	    --test 'tests/cuda/fault_check {test}' --test 'tests/cuda/fault_check --strict {test}' \
	    --folders 'release host host-strict checkpoints' \
	    $(if $(TRUST),--trust) --seconds $(or $(FAULT_SECONDS),1800) --jobs $(or $(JOBS),1) --ledger build/$(if $(HELD),more_)faults $(ONLY)

# The same library for a wheel, which has the outside libraries beside it: found by a path that those inherit too.
ifneq ($(WHEEL),)
$(WHEEL): $(LIB_OBJ) src/api/utter.map
	$(call link_shared,-Wl$(comma)--disable-new-dtags$(comma)-rpath$(comma)'$$ORIGIN')
endif

# ---- To give away (dist/) ----
# For any glibc from 2.31 on: of this machine, or PORTABLE=arm64.
MACHINE := $(or $(PORTABLE),$(if $(filter aarch64%,$(shell $(CC) -dumpmachine)),arm64,amd64))
portable = +@packaging/sysroot $(MACHINE) build/sysroot/$(MACHINE) && $(MAKE) -s PORTABLE=$(MACHINE)
wheel: ## dist/utter-VERSION-py3-none-manylinux_...whl: the library, the voice and all they need, for Python
	+@packaging/sysroot $(MACHINE) build/sysroot/$(MACHINE)
	@mkdir -p dist && rm -f dist/utter-*_$(patsubst arm64,aarch64,$(MACHINE:amd64=x86_64)).whl && CUDA=$(CUDA) PORTABLE=$(MACHINE) python3 bindings/python/backend.py dist
tarball: ## dist/utter-VERSION-linux-MACHINE.tar.gz: the program and all it needs, for any Linux with glibc >= 2.31
	$(portable) build/portable-$(MACHINE)/utter build/portable-$(MACHINE)/libutter.so.0
	@packaging/tarball build/portable-$(MACHINE) $(MACHINE) dist
deb: ## dist/*.deb: Debian's packages of the last commit
	@packaging/deb dist
deb-portable: tarball ## dist/utter_VERSION~portable_MACHINE.deb: what the archive holds, for any Debian and Ubuntu
	@packaging/deb-portable dist
# What builds programs or Python packages for this machine by itself (api, python, tools, style) has nothing to say here;
# nor have servers, whose clients wait for no qemu, and books, whose libxml2 is the system's and whose jail qemu leaves
# open. The transcripts are one program, and take some fifty times as long as here: nothing of them is left out.
ARM_CHECKS := golden/ cli/ cpu/ engine/ base/ weights/ text/ script/ effects/ audio/ model/ prompt/ voice/ reading/ words/ book/test_sections fuzz/ \
              maker/ hub/ api/test_ server/test_ dialects/test_
check-arm: checkpoints ## the checks of the CPU's code, compiled for 64-bit Arm and run by qemu; ONLY=cpu/test_packed is a sample; DEBIAN=1: with libraries that need not be built
	@packaging/sysroot arm64 build/sysroot/arm64$(if $(DEBIAN),-debian debian) && $(MAKE) -s PORTABLE=arm64 CUDA=0 $(if $(strip $(call of_scripts,$(ONLY))),all test-programs,chosen-alone)
	@QEMU_LD_PREFIX=$(CURDIR)/build/sysroot/arm64$(if $(DEBIAN),-debian) TEST_SECONDS=$${TEST_SECONDS:-9000} packaging/arm tools/run_tests build/portable-arm64 $(or $(ONLY),$(ARM_CHECKS))

# PREFIX, LIBDIR (PREFIX/lib) and DESTDIR say where.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export CUDA_LIBS := $(CUDA_LIBS)
install: $(B)/utter $(B)/libutter.a $(SHARED) ## program, libraries, header, pkg-config, CMake and manual under PREFIX
	@tools/install $(B) put
uninstall: ## takes away what install put there
	@tools/install $(B) remove

clean: ## removes build/
	rm -rf build

-include $(shell find $(sort $(B) $(R)) -name '*.d' 2>/dev/null)
