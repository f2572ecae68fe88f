/* Other processes, for (eshkol processes): starting them with pipes, feeding them and gathering what they write,
 * waiting for them. While something waits, an interrupt is looked for; nothing is started through a shell.
 *
 * A process is an object of type IDENTITY with a mark of its own. When nobody refers to it any more, it is waited for
 * then, or before the next one is started: no zombie stays. All our descriptors are closed in the new process. */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include "data.h"
#include "ports.h"
#include "threads.h"

#include <errno.h>

#if defined(_WIN32) || defined(__wasm__)

static Value missing(Context *context, const Value *args, int64_t count) {
    (void)args, (void)count;
    esk_fail(context, ERROR_SYSTEM, NULL, "this system has no POSIX processes", 0);
}
#define ROW(name, signature, min, max, function, doc) ESK_PRIMITIVE_N(name, signature, min, max, missing, doc)

#else

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROW ESK_PRIMITIVE_N

extern char **environ;

/* In another folder no program is started with a glibc before 2.29. */
#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 29)
#define posix_spawn_file_actions_addchdir_np(actions, folder) ((void)(actions), (void)(folder), ENOSYS)
#endif
#endif

enum {
    PROCESS_MARK = 'P',      /* in head.a: an object that make-object gives has none */
    WAIT_MILLISECONDS = 50,  /* how long an interrupt may go unnoticed while we wait */
    LONGEST_NAP = 20000000,  /* nanoseconds between two looks whether a process has ended */
    PIECE = 1 << 14          /* bytes that are moved at once */
};

typedef struct {
    Object head;
    pid_t pid;
    int32_t ended; /* whether it was waited for; then its number may be another's */
    int32_t status;
} Process;

/* ---- who was forgotten ------------------------------------------------------------------------------------------ */

enum { FORGOTTEN = 256 };
static pid_t forgotten[FORGOTTEN];
static int forgotten_count;
static pthread_mutex_t forgotten_lock = PTHREAD_MUTEX_INITIALIZER;

static void reap_forgotten(void) {
    pthread_mutex_lock(&forgotten_lock);
    for (int i = 0; i < forgotten_count;) {
        if (waitpid(forgotten[i], NULL, WNOHANG) == 0) i++;
        else forgotten[i] = forgotten[--forgotten_count];
    }
    pthread_mutex_unlock(&forgotten_lock);
}

static void finalize_process(Object *object) {
    Process *process = (Process *)object;
    if (process->ended || process->pid <= 0 || waitpid(process->pid, NULL, WNOHANG) != 0) return;
    pthread_mutex_lock(&forgotten_lock);
    if (forgotten_count < FORGOTTEN) forgotten[forgotten_count++] = process->pid;
    pthread_mutex_unlock(&forgotten_lock);
}

static Process *process_argument(Context *context, const char *who, Value v) {
    if (!esk_is(v, TAG_IDENTITY) || ((Object *)esk_pointer(v))->a != PROCESS_MARK)
        esk_wrong_type(context, who, 1, v, "a process");
    return esk_pointer(v);
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* Strings one after another in one bytevector, and pointers to them in another, which ends with null. */
static char **words(Context *context, const char *who, int position, Value list, Bytevector **kept) {
    int64_t count = esk_need_list(context, who, position, list), bytes = 0;
    for (Value rest = list; esk_is(rest, TAG_PAIR); rest = esk_cdr(rest))
        bytes += need_string(context, who, position, esk_car(rest))->length * 4 + 1;
    Bytevector *text = esk_pointer(esk_make_bytevector(context, bytes, 0));
    *kept = text;
    Bytevector *pointers = esk_pointer(esk_make_bytevector(context, (count + 1) * (int64_t)sizeof(char *), 0));
    char **to = (char **)(void *)pointers->bytes;
    char *at = (char *)text->bytes;
    int64_t i = 0;
    for (Value rest = list; i < count && esk_is(rest, TAG_PAIR); rest = esk_cdr(rest), i++) {
        const char *word = esk_file_name(context, who, position, esk_car(rest));
        size_t length = strlen(word) + 1;
        memcpy(at, word, length);
        to[i] = at;
        at += length;
    }
    to[i] = NULL;
    return to;
}

static bool can_run(const char *path) {
    struct stat about;
    return !stat(path, &about) && S_ISREG(about.st_mode) && !access(path, X_OK);
}

/* Where a program is: itself where it has a slash, else the first of that name on the PATH. */
static bool find_program(const char *name, char *path) {
    if (strlen(name) >= PATH_MAX) return false;
    if (strchr(name, '/')) return strcpy(path, name), true;
    const char *at = getenv("PATH");
    for (at = at ? at : "/bin:/usr/bin"; *name; at++) {
        size_t length = strcspn(at, ":");
        if (length + strlen(name) + 2 <= PATH_MAX) {
            memcpy(path, at, length);
            if (length) path[length++] = '/';
            strcpy(path + length, name);
            if (can_run(path)) return true;
        }
        at += strcspn(at, ":");
        if (!*at) return false;
    }
    return false;
}

static int for_us(int descriptor) { /* closed in processes that are started, and none of the three that each has */
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
}

static bool make_pipe(int ends[2]) {
    int raw[2];
    if (pipe(raw) < 0) return false;
    ends[0] = for_us(raw[0]);
    ends[1] = for_us(raw[1]);
    int error = errno;
    close(raw[0]);
    close(raw[1]);
    errno = error;
    if (ends[0] >= 0 && ends[1] >= 0) return true;
    if (ends[0] >= 0) close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    return false;
}

enum { AS_OURS, A_PIPE, NOTHING, AS_OUTPUT }; /* what %spawn is told of each standard port; or it is given a port */

typedef struct {
    int theirs[3]; /* descriptors that the process gets, -1: as ours */
    int ours[3];   /* the other ends of pipes, or -1 */
} Ends;

static void close_all(const int *descriptors) {
    int error = errno;
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0) close(descriptors[i]);
    errno = error;
}

static bool open_ends(Ends *ends, const Value *wishes) {
    for (int i = 0; i < 3; i++) {
        int both[2];
        if (esk_is(wishes[i], TAG_PORT)) {
            ends->theirs[i] = for_us(((Port *)esk_pointer(wishes[i]))->descriptor);
            if (ends->theirs[i] < 0) return false;
        } else if (wishes[i].bits == A_PIPE) {
            if (!make_pipe(both)) return false;
            ends->theirs[i] = both[i ? 1 : 0];
            ends->ours[i] = both[i ? 0 : 1];
            fcntl(ends->ours[i], F_SETFL, fcntl(ends->ours[i], F_GETFL) | O_NONBLOCK);
        } else if (wishes[i].bits == NOTHING) {
            int null = open("/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
            if (null < 0) return false;
            ends->theirs[i] = for_us(null);
            close(null);
            if (ends->theirs[i] < 0) return false;
        }
    }
    return true;
}

static int start(pid_t *pid, const char *path, char **argv, char **environment, const char *folder, const Ends *ends,
                 bool error_as_output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    if ((error = posix_spawnattr_init(&how))) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    for (int i = 0; !error && i < 3; i++)
        if (ends->theirs[i] >= 0) error = posix_spawn_file_actions_adddup2(&actions, ends->theirs[i], i);
    if (!error && error_as_output) error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error && folder) error = posix_spawn_file_actions_addchdir_np(&actions, folder);
    sigset_t none, usual; /* we ignore closed pipes, and that would be inherited */
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    if (!error) error = posix_spawnattr_setsigmask(&how, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&how, &usual);
    if (!error) error = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawn(pid, path, &actions, &how, argv, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static Value spawn(Context *context, const Value *args, int64_t count) {
    static const char who[] = "start-process";
    Bytevector *kept_words, *kept_environment;
    char path[PATH_MAX];
    (void)count;
    const char *name = esk_file_name(context, who, 1, args[0]);
    char **argv = words(context, who, 2, esk_cons(context, args[0], args[1]), &kept_words);
    char **environment = esk_is_false(args[2]) ? environ : words(context, who, 3, args[2], &kept_environment);
    const char *folder = esk_is_false(args[3]) ? NULL : esk_file_name(context, who, 4, args[3]);
    for (int i = 0; i < 3; i++) {
        Value wish = args[4 + i];
        Port *port = esk_is(wish, TAG_PORT) ? esk_pointer(wish) : NULL;
        if (port ? port->descriptor < 0 || !(port->flags & (i ? PORT_OUTPUT : PORT_INPUT))
                 : !esk_is(wish, TAG_FIXNUM) || wish.bits > (i == 2 ? AS_OUTPUT : NOTHING))
            esk_wrong_type(context, who, 5 + i, wish, "an open port of a file");
        if (port && i) esk_port_flush(context, who, port);
    }
    if (!find_program(name, path))
        esk_fail(context, ERROR_SYSTEM, who, "there is no program of this name on the PATH", 1, args[0]);
    reap_forgotten();
    esk_flush_standard_ports(context);
    signal(SIGPIPE, SIG_IGN);

    Process *process = esk_allocate(context, sizeof *process, TAG_IDENTITY); /* first what may fail */
    process->head.a = PROCESS_MARK;
    process->pid = 0, process->ended = 0, process->status = 0;
    esk_finalize(context, &process->head, finalize_process);
    Port *ports[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        if (esk_is(args[4 + i], TAG_FIXNUM) && args[4 + i].bits == A_PIPE)
            ports[i] = esk_prepare_port(context, args[0], (i ? PORT_INPUT : PORT_OUTPUT) | PORT_BINARY);

    Ends ends;
    int error = 0;
    for (int tries = 0; tries < 2; tries++) {
        ends = (Ends){{-1, -1, -1}, {-1, -1, -1}};
        error = open_ends(&ends, args + 4) ? 0 : errno;
        if (tries || (error != EMFILE && error != ENFILE)) break;
        close_all(ends.theirs);
        close_all(ends.ours);
        esk_collect(context); /* forgotten ports hold descriptors */
    }
    bool error_as_output = esk_is(args[6], TAG_FIXNUM) && args[6].bits == AS_OUTPUT;
    if (!error) error = start(&process->pid, path, argv, environment, folder, &ends, error_as_output);
    close_all(ends.theirs);
    if (error) {
        process->pid = 0;
        close_all(ends.ours);
        Value about = folder ? esk_cons(context, args[0], args[3]) : args[0];
        esk_fail(context, ERROR_SYSTEM, who, strerror(error), 1, about);
    }
    for (int i = 0; i < 3; i++) /* all are lent before one is given its buffer, which may fail */
        if (ports[i]) ports[i]->descriptor = ends.ours[i];
    Value result[4] = {esk_object(process)};
    for (int i = 0; i < 3; i++) {
        if (ports[i]) esk_start_port(context, ports[i], ends.ours[i]);
        result[i + 1] = ports[i] ? esk_object(ports[i]) : ESK_FALSE;
    }
    return esk_list(context, result, 4);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* When a wait of so many milliseconds is over; 0: never. */
static int64_t deadline_of(Context *context, const char *who, int position, Value v) {
    if (esk_is_false(v)) return 0;
    int64_t milliseconds = need_index(context, who, position, v, (int64_t)1 << 40);
    return esk_monotonic() + milliseconds * 1000000;
}

static Value wait_for(Context *context, const Value *args, int64_t count) {
    static const char who[] = "process-wait";
    (void)count;
    Process *process = process_argument(context, who, args[0]);
    int64_t deadline = deadline_of(context, who, 2, args[1]), nap = 100000;
    while (!process->ended) {
        int status;
        pid_t found = waitpid(process->pid, &status, WNOHANG);
        if (found == process->pid) {
            process->ended = 1;
            process->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        } else if (found < 0 && errno != EINTR) {
            process->ended = 1; /* it is not ours any more */
            esk_fail(context, ERROR_SYSTEM, who, "how the process ended was told to somebody else", 1, args[0]);
        } else {
            if (deadline && esk_monotonic() >= deadline) return ESK_FALSE;
            struct timespec time = {0, (long)nap};
            nanosleep(&time, NULL);
            nap = nap * 2 < LONGEST_NAP ? nap * 2 : LONGEST_NAP;
            esk_notice(context);
        }
    }
    return esk_fixnum(process->status);
}

static Value send_signal(Context *context, const Value *args, int64_t count) {
    (void)count;
    Process *process = process_argument(context, "process-kill", args[0]);
    int64_t number = need_index(context, "process-kill", 2, args[1], 128);
    if (!process->ended && kill(process->pid, (int)number) < 0)
        esk_fail(context, ERROR_SYSTEM, "process-kill", strerror(errno), 1, args[1]);
    return ESK_UNSPECIFIED;
}

static Value process_number(Context *context, const Value *args, int64_t count) {
    (void)count;
    return esk_fixnum(process_argument(context, "process-id", args[0])->pid);
}

static Value nap(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t left = need_index(context, "sleep", 1, args[0], (int64_t)1 << 40);
    const uint64_t place = 0; /* nobody else knows it */
    esk_wait(context, &place, 0, esk_monotonic() + left * 1000000);
    return ESK_UNSPECIFIED;
}

/* ---- feeding and gathering -------------------------------------------------------------------------------------- */

typedef struct {
    Port *port; /* null when it has ended */
    Bytevector *bytes;
    int64_t used;
} Stream;

static Stream stream_argument(Context *context, Value v, uint32_t flags) {
    if (esk_is_false(v)) return (Stream){NULL, NULL, 0};
    Port *port = esk_is(v, TAG_PORT) ? esk_pointer(v) : NULL;
    if (!port || port->descriptor < 0 || !(port->flags & flags))
        esk_wrong_type(context, "process-communicate", 1, v, "an open port of a process");
    return (Stream){port, NULL, 0};
}

static void gather(Context *context, Stream *all, const uint8_t *bytes, int64_t count) {
    if (!all->bytes || all->bytes->length - all->used < count) {
        Bytevector *more = esk_pointer(esk_make_bytevector(context, (all->used + count) * 2, 0));
        if (all->bytes) memcpy(more->bytes, all->bytes->bytes, (size_t)all->used);
        all->bytes = more;
    }
    memcpy(all->bytes->bytes + all->used, bytes, (size_t)count);
    all->used += count;
}

static Value gathered(Context *context, const Stream *all) {
    Value made = esk_make_bytevector(context, all->used, 0);
    if (all->used) memcpy(((Bytevector *)esk_pointer(made))->bytes, all->bytes->bytes, (size_t)all->used);
    return made;
}

static void end_stream(Context *context, Stream *stream) {
    Port *port = stream->port;
    stream->port = NULL;
    port->at = port->filled = 0; /* nothing of its own is flushed any more */
    esk_close_port(context, "process-communicate", port);
}

/* Writes a piece of the input. Whoever does not read all of it has his reasons: a closed pipe is only the end. */
static void feed(Context *context, Stream *input) {
    int64_t left = input->bytes->length - input->used, size = left < PIECE ? left : PIECE;
    ssize_t n = write(input->port->descriptor, input->bytes->bytes + input->used, (size_t)size);
    if (n > 0) input->used += n;
    if (input->used == input->bytes->length || (n < 0 && errno != EAGAIN && errno != EINTR)) end_stream(context, input);
}

static void drain(Context *context, Stream *output) {
    uint8_t piece[PIECE];
    ssize_t n = read(output->port->descriptor, piece, sizeof piece);
    if (n > 0) gather(context, output, piece, n);
    else if (!n || (errno != EAGAIN && errno != EINTR)) end_stream(context, output);
}

/* All three at the same time, so that nobody waits for a pipe that is full. */
static Value communicate(Context *context, const Value *args, int64_t count) {
    static const char who[] = "process-communicate";
    (void)count;
    Stream input = stream_argument(context, args[0], PORT_OUTPUT);
    Stream outputs[2] = {stream_argument(context, args[1], PORT_INPUT), stream_argument(context, args[2], PORT_INPUT)};
    input.bytes = need_bytevector(context, who, 4, args[3]);
    int64_t deadline = deadline_of(context, who, 5, args[4]);
    int64_t limit = esk_is_false(args[5]) ? INT64_MAX : need_size(context, who, 6, args[5]);
    const char *stopped = NULL;
    if (input.port && !input.bytes->length) end_stream(context, &input);
    while (!stopped && (input.port || outputs[0].port || outputs[1].port)) {
        struct pollfd waits[3] = {
            {.fd = input.port ? input.port->descriptor : -1, .events = POLLOUT},
            {.fd = outputs[0].port ? outputs[0].port->descriptor : -1, .events = POLLIN},
            {.fd = outputs[1].port ? outputs[1].port->descriptor : -1, .events = POLLIN},
        };
        int ready = esk_wait_for(context, waits, 3, WAIT_MILLISECONDS);
        esk_notice(context);
        if (deadline && esk_monotonic() >= deadline) stopped = "timeout";
        if (ready <= 0) continue;
        if (waits[0].revents) feed(context, &input);
        for (int i = 0; i < 2; i++)
            if (waits[i + 1].revents) drain(context, &outputs[i]);
        if (outputs[0].used + outputs[1].used > limit) stopped = "limit";
    }
    Value result[] = {gathered(context, &outputs[0]), gathered(context, &outputs[1]), ESK_FALSE};
    if (stopped) result[2] = esk_symbol(context, stopped, (int64_t)strlen(stopped));
    return esk_list(context, result, 3);
}

#endif

const Primitive esk_processes_primitives[] = {
    ROW("%spawn", "(%spawn program arguments environment folder input output error)", 7, 7, spawn,
        "Starts a program: a process, and for each standard port that shall be a pipe (1) our end of it, in a list. 0: "
        "as ours, 2: nothing, 3: the error port as the output port, or a port of a file."),
    ROW("%process-wait", "(%process-wait process milliseconds)", 2, 2, wait_for,
        "The code that the process ended with, less than zero for a signal; #f where it still runs after that time."),
    ROW("%process-kill", "(%process-kill process signal)", 2, 2, send_signal,
        "Sends a signal to a process that has not ended."),
    ROW("%process-id", "(%process-id process)", 1, 1, process_number, "The number of a process."),
    ROW("%communicate", "(%communicate input output error bytes milliseconds limit)", 6, 6, communicate,
        "Writes the bytes to the input port and reads the others to their ends: what they gave, and timeout or limit "
        "where that stopped it, in a list. Closes the ports that came to their end."),
    ROW("%sleep", "(%sleep milliseconds)", 1, 1, nap, "Waits."),
    {0},
};
