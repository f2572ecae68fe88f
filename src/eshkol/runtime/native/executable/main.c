/* Where an executable begins: the program runs on a thread of its own, with a large stack, which alone hears Ctrl-C. It
 * ends with 0, with what was given to exit, with 1 after an error that nobody handled, with 130 after Ctrl-C, or with
 * 141 where nobody reads its output any more; a second Ctrl-C within a second ends it at once. */
#define _GNU_SOURCE
#include "program.h"
#include "ports.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1, INTERRUPTED = 130, BROKEN_PIPE = 141 };
#define STACK_BYTES ((size_t)1 << 30) /* of address space; only what is used takes memory */
#define LEAST_STACK ((size_t)8 << 20)
#define HARD_NANOSECONDS 1000000000

int64_t esk_set_command_line(const char *const *words, int64_t count);

static struct { const char *const *words; int count, code; } process;
static Context *running;
static int64_t pressed; /* when Ctrl-C was last heard, in nanoseconds */

static void on_interrupt(int signal_number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t at = (int64_t)now.tv_sec * HARD_NANOSECONDS + now.tv_nsec;
    bool again = pressed && at - pressed < HARD_NANOSECONDS;
    pressed = at;
    if (again || !running) {
        signal(signal_number, SIG_DFL);
        kill(getpid(), signal_number);
        return;
    }
    esk_interrupt(running);
}

static void listen(void) {
    struct sigaction action = {.sa_handler = on_interrupt}; /* what waits for input is to hear it, too: no SA_RESTART */
    struct sigaction before;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return; /* as shells do behind "&" */
    sigaction(SIGINT, &action, NULL);
}

/* What was written is written out; the exit code, which says so where that failed. */
static int flushed(Context *context, int code) {
    int error = esk_flush_standard_ports(context);
    if (error == EPIPE) return BROKEN_PIPE;
    if (error && !code) {
        fprintf(stderr, "error: %s: 'standard output'\n", strerror(error));
        return FAILED;
    }
    return code;
}

static void *run(void *unused) {
    (void)unused;
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    Context *context = esk_begin_program(0);
    if (!context) {
        fputs("error: there is no memory for the heap\n", stderr);
        process.code = FAILED;
        return NULL;
    }
    esk_set_command_line(process.words, process.count);
    running = context;
    listen();
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
    Value result = ESK_UNSPECIFIED;
    switch (esk_run_program(context, &result)) {
    case 0: process.code = flushed(context, 0); break;
    case 1: process.code = esk_report(context, result, stderr); break;
    default: process.code = flushed(context, (int)(result.bits & 255)); break;
    }
    return NULL;
}

/* The thread, with as much address space for its stack as there is; false where it cannot be had. */
static bool begin(pthread_t *thread) {
    for (size_t bytes = STACK_BYTES; bytes >= LEAST_STACK; bytes /= 2) {
        size_t guard = (size_t)sysconf(_SC_PAGESIZE);
        char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) continue;
        pthread_attr_t attributes;
        bool made = mprotect(stack, guard, PROT_NONE) == 0 && pthread_attr_init(&attributes) == 0 &&
                    pthread_attr_setstack(&attributes, stack + guard, bytes - guard) == 0 &&
                    pthread_create(thread, &attributes, run, NULL) == 0;
        if (made) return true;
        munmap(stack, bytes);
    }
    return false;
}

int main(int count, char **words) {
    process.words = (const char *const *)words;
    process.count = count;
    signal(SIGPIPE, SIG_IGN); /* it is an error of whoever writes */
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
    pthread_t thread;
    if (!begin(&thread)) {
        fputs("error: there is no memory for the stack\n", stderr);
        return FAILED;
    }
    pthread_join(thread, NULL);
    return process.code;
}
