# Leasehold: build it, run it, test it.
#
#   make                    build/lease.so, build/lease-fcgi, build/lease
#   make run [PORT=8184] [BIND=127.0.0.1] [DB=var/lease.db] [HOSTS=a,b]
#            [TLS=key-and-certificate.pem] [USERS=file [GROUPS=file]]
#            [ACCESS_LOG=file]
#     TLS=var/self.pem is made where missing, for trying out
#   make install | uninstall [PREFIX=/usr/local] [DESTDIR=]
#   make test [SAN=address,undefined | SAN=thread] [T=pytest arguments]
#   make bench [ROUNDS=3] [TIME=2]
#   make soak [TIME=600] | coverage [T=pytest arguments]
#   make fuzz [TARGET=json] [TIME=600]
#   make demo | lint | clean
#
# Two variants of everything: the product (build/) and the test build
# (build/test/), which can take its time from a file. SAN=… gets a tree of its
# own (build/san-…/). sql/*.sql become build/sql.c and build/sql.h: one C
# constant a file, sql/lease_grant.sql is SQL_LEASE_GRANT.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:

PORT ?= 8184
BIND ?= 127.0.0.1
DB ?= var/lease.db
HOSTS ?=
TLS ?=
USERS ?=
GROUPS ?=
ACCESS_LOG ?=
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?=
T ?=
PYTHON := /usr/bin/python3

comma := ,
B := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

RUN_PACKAGES := gcc libc6-dev libsqlite3-dev libfcgi-dev lighttpd \
  lighttpd-modules-lua libcurl4-openssl-dev $(if $(TLS),lighttpd-mod-openssl openssl)
# Languages that load the extension in a test. Node's npm may come with it.
HOST_PACKAGES := binutils perl libdbd-sqlite3-perl tcl libsqlite3-tcl ruby \
  ruby-sqlite3 php-cli php-sqlite3 default-jdk-headless \
  libxerial-sqlite-jdbc-java golang-go golang-github-mattn-go-sqlite3-dev \
  r-cran-rsqlite \
  g++ make nodejs $(if $(shell command -v npm),,npm)
TEST_PACKAGES := $(RUN_PACKAGES) lighttpd-mod-openssl sqlite3 curl python3 python3-pytest \
  python3-hypothesis python3-selenium chromium chromium-driver \
  python3-jsonschema python3-prometheus-client openapi-specification mandoc iproute2 openssl \
  libfaketime spin systemd \
  $(if $(SAN),,$(HOST_PACKAGES) valgrind)
FUZZ_PACKAGES := $(RUN_PACKAGES) clang libclang-rt-14-dev python3
# Those of others start them where the system starts services: stop them.
BENCH_PACKAGES := $(RUN_PACKAGES) wrk etcd-server redis-server redis-tools \
  postgresql python3 python3-fastapi python3-uvicorn
LINT_PACKAGES := $(RUN_PACKAGES) clang clang-format clang-tidy cppcheck \
  python3 shellcheck

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
  -Wno-overlength-strings
# -Wpedantic would reject SQL texts longer than 4,095 characters.
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARN) -fPIC -pthread \
  -fvisibility=hidden -fno-strict-aliasing -Ibuild \
  $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
    -fno-sanitize-recover=all)
ALL_LDFLAGS := $(LDFLAGS) -pthread $(if $(SAN),-fsanitize=$(SAN))

SQL := $(sort $(wildcard sql/*.sql))
EXT := $(sort $(wildcard ext/*.c))
FCGI := $(sort $(wildcard fcgi/*.c))
CLI := $(sort $(wildcard cli/*.c))
POWER := $(addprefix tests/power/,power.c story.c judge.c crash.c disk.c) fcgi/walfile.c
FAULTS := $(addprefix tests/power/,faults.c judge.c disk.c) fcgi/walfile.c

TIME ?= $(if $(filter bench,$(MAKECMDGOALS)),2,600)
ROUNDS ?= 3
ONLY ?= http,batch,embedded,growth,waits

.PHONY: all run install uninstall test bench soak coverage fuzz demo lint clean \
  install-run install-test install-lint install-fuzz install-bench
all: $(B)/lease.so $(B)/lease-fcgi $(B)/lease

# --- SQL into C ------------------------------------------------------------
build/sql.h: $(SQL) Makefile
	@mkdir -p build
	@for f in $(SQL); do n=$${f#sql/}; n=$${n%.sql}; \
	  echo "extern const char SQL_$${n^^}[];"; done >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@; touch $@

# The comment at the head of a file stays out of the binary; those inside a
# statement go with it, so that .schema shows what each column is.
build/sql.c: $(SQL) build/sql.h
	@{ echo '#include "sql.h"'; \
	for f in $(SQL); do n=$${f#sql/}; n=$${n%.sql}; \
	  echo "const char SQL_$${n^^}[] ="; \
	  sed -e '1,/^[^-]/{/^--/d;/^$$/d}' -e 's/[\\"]/\\&/g' \
	    -e 's/.*/"&\\n"/' "$$f"; echo ';'; done; } >$@

# --- objects: so/ for the extension, core/ for programs that link it -------
# $(1) folder, $(2) extra flags
define variant
$(1)/so/%.o: %.c build/sql.h
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $(2) -MMD -MP -c -o $$@ $$<
$(1)/core/%.o: %.c build/sql.h
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $(2) -DSQLITE_CORE -MMD -MP -c -o $$@ $$<
$(1)/lease.so: $$(EXT:%.c=$(1)/so/%.o) $(1)/so/build/sql.o
	$$(CC) $$(ALL_LDFLAGS) -shared -o $$@ $$^
$(1)/lease-fcgi: $$(FCGI:%.c=$(1)/core/%.o) $$(EXT:%.c=$(1)/core/%.o) \
  $(1)/core/build/sql.o
	$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ -lfcgi -lsqlite3
$(1)/lease: $$(CLI:%.c=$(1)/core/%.o) $$(EXT:%.c=$(1)/core/%.o) \
  $(1)/core/build/sql.o
	$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ -lcurl -lsqlite3 -lm
-include $$(wildcard $(1)/so/*/*.d $(1)/core/*/*.d)
endef
$(eval $(call variant,$(B),))
$(eval $(call variant,$(B)/test,-DLEASE_TEST_CLOCK))

# Pulls the plug at every moment of a database's life; lets each call fail.
$(B)/power: $(POWER:%.c=$(B)/test/core/%.o)
$(B)/faults: $(FAULTS:%.c=$(B)/test/core/%.o)
$(B)/power $(B)/faults: $(EXT:%.c=$(B)/test/core/%.o) $(B)/test/core/build/sql.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lsqlite3
$(B)/preload.so: tests/power/preload.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -o $@ $< -ldl
-include $(wildcard $(B)/test/core/tests/power/*.d)

# --- fuzz targets: the test build with a clock that stands still ------------
# With FUZZER= they search, without they run what was found before.
FUZZ_ENGINE := sql file
FUZZ_SERVICE := request json
FUZZ := $(FUZZ_SERVICE) $(FUZZ_ENGINE)
# $(1) targets, $(2) what they are made of besides themselves, $(3) flags
define fuzz
$(1:%=$(B)/fuzz/%): $(B)/fuzz/%: $(B)/test/core/tests/fuzz/%.o \
  $(patsubst %.c,$(B)/test/core/%.o,tests/fuzz/world.c build/sql.c \
  $(filter-out ext/clock.c,$(EXT)) $(2) $(if $(FUZZER),,tests/fuzz/replay.c))
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_LDFLAGS) $$(FUZZER) -o $$@ $$^ $(3) -lsqlite3
endef
$(eval $(call fuzz,$(FUZZ_ENGINE),,))
$(eval $(call fuzz,$(FUZZ_SERVICE),$(filter-out \
  fcgi/main.c fcgi/service.c fcgi/worker.c,$(FCGI)),-lfcgi))
$(B)/fuzz/request: ALL_LDFLAGS += -Wl,--wrap=accept4
-include $(wildcard $(B)/test/core/tests/fuzz/*.d)

# --- installing what is missing --------------------------------------------
# $(1) packages. As root or with sudo; else the command is printed. The server
# that comes with lighttpd, on port 80, is nobody's wish: not left on.
define install
@missing=$$(for p in $(1); do \
  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q ' installed$$' \
    || echo $$p; done); \
[ -z "$$missing" ] && exit 0; \
do="apt-get install -y --no-install-recommends $$(echo $$missing)"; \
if [ "$$(id -u)" = 0 ]; then as=; \
elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; \
then as=sudo; \
else echo "missing packages; run as root:  apt-get update && $$do" >&2; \
  exit 1; fi; \
echo "installing: $$(echo $$missing)"; \
export DEBIAN_FRONTEND=noninteractive; \
$$as apt-get update -q && $$as $$do || exit 1; \
if [[ " "$$missing" " =~ [[:space:]]lighttpd[[:space:]] ]] && \
  command -v systemctl >/dev/null; then \
  $$as systemctl -q disable lighttpd; \
  [ ! -d /run/systemd/system ] || $$as systemctl stop lighttpd; \
fi
endef
install-run:
	$(call install,$(RUN_PACKAGES))
install-test:
	$(call install,$(TEST_PACKAGES))
install-bench:
	$(call install,$(BENCH_PACKAGES))
install-lint:
	$(call install,$(LINT_PACKAGES))
install-fuzz:
	$(call install,$(FUZZ_PACKAGES))

# --- serving in the foreground ---------------------------------------------
# The socket lies in a folder of its own that nobody else may enter, new each
# time: no service of before can be behind it.
# The settings go through the environment, whatever is in them.
# A client that holds a connection and says nothing keeps lighttpd from ending:
# SIGTERM then cuts it off.
RUN_SETTINGS := PORT BIND DB HOSTS TLS USERS GROUPS ACCESS_LOG
$(foreach v,$(RUN_SETTINGS),$(eval run: export RUN_$v := $$($v)))
run: install-run $(filter var/self.pem,$(TLS))
	@$(MAKE) --no-print-directory all
	@whole() { case "$$1" in ''|/*) echo "$$1";; *) echo "$$PWD/$$1";; esac; }; \
	[ "$$RUN_DB" != var/lease.db ] || mkdir -p var; \
	export LEASE_DB="$$(whole "$$RUN_DB")" LEASE_HOSTS="$$RUN_HOSTS" \
	  LEASE_TLS="$$(whole "$$RUN_TLS")" LEASE_USERS="$$(whole "$$RUN_USERS")" \
	  LEASE_GROUPS="$$(whole "$$RUN_GROUPS")" \
	  LEASE_ACCESS_LOG="$$(whole "$$RUN_ACCESS_LOG")" \
	  LEASE_ROOT="$$PWD" LEASE_BIN="$$(whole '$(B)/lease-fcgi')" \
	  LEASE_BIND="$$RUN_BIND" LEASE_PORT="$$RUN_PORT" PATH="$$PATH:/usr/sbin:/sbin"; \
	"$$LEASE_BIN" check || exit 1; \
	export LEASE_RUN=$$(mktemp -d "$${TMPDIR:-/tmp}/leasehold.XXXXXX"); \
	trap 'rm -rf "$$LEASE_RUN"' EXIT; ended=; \
	end() { ended=1; { timeout 4 tail -s 0.1 --pid=$$pid -f /dev/null || kill $$pid; } & }; \
	trap end INT; trap 'end; kill -INT $$pid' TERM HUP; \
	echo "Leasehold: http$(if $(TLS),s)://$(if $(filter 0.0.0.0 [::],$(BIND)),localhost,$(BIND)):$(PORT)/ on $$LEASE_DB"; \
	lighttpd -D -f "$$LEASE_ROOT/lighttpd.conf" & pid=$$!; \
	wait $$pid; while kill -0 $$pid 2>/dev/null; do wait $$pid; done; \
	wait $$pid || [ -n "$$ended" ]

# A certificate for trying out: nobody has any reason to trust it.
var/self.pem:
	@mkdir -p $(@D); umask 077; names='$(HOSTS)'; names=$${names// /}; \
	openssl req -x509 -nodes -days 365 -newkey ec \
	  -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=leasehold -addext \
	  "subjectAltName=DNS:localhost,IP:127.0.0.1$${names:+,DNS:$${names//,/,DNS:}}" \
	  -keyout $@.key -out $@.crt 2>$@.err || { cat $@.err >&2; exit 1; }; \
	cat $@.key $@.crt >$@; rm $@.key $@.crt $@.err

# --- on this machine for good ------------------------------------------------
# mode:file:where under PREFIX. leasehold.service says what comes next.
WWW = $(shell find www -type f -regex '.*\.\(htm\|css\|js\|json\|svg\)')
INSTALLED = 755:$(B)/lease:bin/lease \
  644:cli/lease.1:share/man/man1/lease.1 \
  644:cli/lease.bash:share/bash-completion/completions/lease \
  644:leasehold.service:lib/systemd/system/leasehold.service \
  644:README.md:share/doc/leasehold/README.md \
  644:LICENSE:share/doc/leasehold/LICENSE \
  755:$(B)/lease-fcgi:lib/leasehold/lease-fcgi \
  644:$(B)/lease.so:lib/leasehold/lease.so \
  $(foreach f,lighttpd.lua $(wildcard lighttpd*.conf) $(WWW),\
    644:$f:lib/leasehold/$f)
# Nothing that a shell, sed or systemd would read as something else.
define check_prefix
@[[ "$$PREFIX" =~ ^/[A-Za-z0-9/._+-]*$$ ]] || { echo \
  "PREFIX must be absolute, of letters, digits and / . _ + -" >&2; exit 1; }
endef
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export INTO := $(DESTDIR)$(PREFIX)
# With DESTDIR it is for another machine: what runs there is asked for there.
install:
	$(check_prefix)
	$(if $(DESTDIR),,$(call install,$(RUN_PACKAGES) lighttpd-mod-openssl))
	@$(MAKE) --no-print-directory all
	@for f in $(INSTALLED); do IFS=: read -r mode from to <<<"$$f"; \
	  install -D -m $$mode "$$from" "$$INTO/$$to" || exit 1; done
	@sed -i "/^#/!s|/usr/local|$$PREFIX|g" \
	  "$$INTO/lib/systemd/system/leasehold.service"
	@echo "installed in $$INTO"
# By name, then folders with nothing in them: PREFIX=/var has the database there.
uninstall:
	$(check_prefix)
	@for f in $(INSTALLED); do rm -f "$$INTO/$${f##*:}" || exit 1; done
	@find "$$INTO/lib/leasehold" "$$INTO/share/doc/leasehold" \
	  -type d -empty -delete 2>/dev/null || true

# --- tests ------------------------------------------------------------------
test: install-test
	@$(MAKE) --no-print-directory $(B)/lease.so $(B)/lease-fcgi $(B)/lease \
	  $(B)/test/lease.so $(B)/test/lease-fcgi $(FUZZ:%=$(B)/fuzz/%) \
	  $(if $(SAN),,$(B)/power $(B)/faults $(B)/preload.so $(B)/bench/count $(NODE_SQLITE))
	@LEASE_BUILD=$(B) SAN=$(SAN) PYTHON=$(PYTHON) tests/run $(T)

# Node's SQLite, compiled here: its makers' binaries are not to be had
# everywhere. Without optimising, which takes minutes.
NODE_SQLITE := build/node/node_modules/better-sqlite3/build/Debug/better_sqlite3.node
$(NODE_SQLITE):
	@mkdir -p build/node
	@echo "building better-sqlite3"
	@cd build/node && { npm install --no-audit --no-fund --ignore-scripts \
	  better-sqlite3@12 && cd node_modules/better-sqlite3 && \
	  if [ -e /usr/include/node/node.h ]; then \
	    export npm_config_nodedir=/usr; fi; \
	  JOBS=2 npm run build-debug; } >log 2>&1 || { tail -n 30 log; exit 1; }

# How fast it is, beside others and beside what its parts allow; ONLY=http,…
# for a part of it. Takes 15 minutes.
bench: install-bench
	@$(MAKE) --no-print-directory $(B)/lease.so $(B)/lease-fcgi \
	  $(B)/bench/embedded $(B)/bench/empty $(B)/bench/fsyncs.so
	@LEASE_BUILD=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) \
	  tests/bench/bench.py --rounds $(ROUNDS) --seconds $(TIME) --only $(ONLY)
$(B)/bench/%: tests/bench/%.c fcgi/limits.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< -lsqlite3 -lfcgi
$(B)/bench/%.so: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared -o $@ $<

# The long form of what is random in the tests, for TIME seconds in all.
soak: install-test
	@$(MAKE) --no-print-directory $(B)/lease.so $(B)/lease-fcgi $(B)/lease \
	  $(B)/test/lease.so $(B)/test/lease-fcgi $(B)/power $(B)/faults
	@LEASE_BUILD=$(B) PYTHON=$(PYTHON) tests/soak $(TIME)

# Which lines the tests run; below 90 % of ext/ or fcgi/ it fails.
# Without what looks at the build itself, or has no right to write counters.
coverage: install-test $(NODE_SQLITE)
	@$(MAKE) --no-print-directory B=build/coverage LDFLAGS=--coverage \
	  CFLAGS='-O0 -g --coverage' $(addprefix build/coverage/,lease.so \
	  lease-fcgi lease test/lease.so test/lease-fcgi power faults \
	  $(FUZZ:%=fuzz/%))
	@$(MAKE) --no-print-directory B=build/coverage build/coverage/preload.so
	@find build/coverage -name '*.gcda' -delete
	@GCOV_ERROR_FILE=/dev/null LEASE_QUERIES=1000 LEASE_MODEL_STEPS=2000 \
	  LEASE_KILLS=4 LEASE_BUILD=build/coverage PYTHON=$(PYTHON) \
	  tests/run -q -m 'not browser' \
	  -k 'not exported and not locks_nobody_out and not test_speed' $(T)
	@$(PYTHON) tests/coverage.py build/coverage

# Search for inputs that break something, TIME seconds for each target. What
# was found of new ways through the code is kept in tests/fuzz/corpus/.
# FAST=1 leaves AddressSanitizer out, for three times as many.
TARGET ?= $(FUZZ)
FAST ?=
fuzz: install-fuzz
	@$(MAKE) --no-print-directory CC=clang CFLAGS='-O1 -g' \
	  B=build/fuzz$(if $(FAST),-fast) FUZZER=-fsanitize=fuzzer \
	  SAN=fuzzer-no-link,undefined$(if $(FAST),,$(comma)address) \
	  $(TARGET:%=build/fuzz$(if $(FAST),-fast)/fuzz/%)
	@$(PYTHON) tests/fuzz/run build/fuzz$(if $(FAST),-fast)/fuzz $(TIME) $(TARGET)

# Three workers on one shard; FENCE=off leaves the fence out.
demo: all
	@PORT=$(PORT) DB=$(DB) LEASE=$(B)/lease FENCE=$(FENCE) tests/example/demo

C_FILES = $(wildcard ext/*.[ch] fcgi/*.[ch] cli/*.[ch] tests/*.[ch] tests/*/*.[ch])
lint: install-lint
	clang-format --dry-run -Werror $(C_FILES)
	$(PYTHON) tests/lint.py
	shellcheck .ci/run tests/run tests/soak tests/example/demo tests/example/worker \
	  cli/lease.bash
	$(MAKE) --no-print-directory B=build/clang CC=clang all
	clang-tidy --quiet $(EXT) -- -std=c11 -D_GNU_SOURCE -Ibuild
	clang-tidy --quiet $(FCGI) $(CLI) -- -std=c11 -D_GNU_SOURCE -DSQLITE_CORE -Ibuild
	cppcheck --quiet --error-exitcode=1 --inline-suppr -Ibuild -D_GNU_SOURCE \
	  --enable=warning,performance,portability --suppress=missingIncludeSystem \
	  $(EXT) $(FCGI) $(CLI)

clean:
	rm -rf build
