/* What a program asks of the process: exit, command line, environment, time, the current directory. */
#define _POSIX_C_SOURCE 200809L
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "data.h"
#include "ports.h"

extern char **environ;

static Value text(Context *context, const char *bytes) {
    return esk_string_utf8(context, bytes, (int64_t)strlen(bytes));
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

int esk_exit_code(Value value) {
    if (esk_is(value, TAG_BOOLEAN)) return value.bits ? 0 : 1;
    if (esk_is(value, TAG_FIXNUM)) return (int)(value.bits & 255);
    return esk_is(value, TAG_SPECIAL) ? 0 : 1; /* exit without a value; anything else tells of a failure */
}

static Value leave(Context *context, const Value *args, int64_t count) {
    int code = count ? esk_exit_code(args[0]) : 0;
    if (esk_flush_standard_ports(context) && !code) code = 1; /* somebody did not get what was written */
    esk_exit_to_host(context, esk_fixnum(code));
}

/* ---- command line and environment ------------------------------------------------------------------------------- */

/* One for the process; the host sets it before programs run. */
static char **command_line;
static int64_t command_line_count;

int64_t esk_set_command_line(const char *const *words, int64_t count) {
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    bool good = copy;
    for (int64_t i = 0; good && i < count; i++) good = (copy[i] = strdup(words[i]));
    char **old = good ? command_line : copy;
    int64_t old_count = good ? command_line_count : count;
    if (good) {
        command_line = copy;
        command_line_count = count;
    }
    for (int64_t i = 0; old && i < old_count; i++) free(old[i]);
    free(old);
    return good ? 0 : -1;
}

static Value get_command_line(Context *context) {
    Value list = ESK_NULL;
    for (int64_t i = command_line_count; i > 0; i--) list = esk_cons(context, text(context, command_line[i - 1]), list);
    return list;
}

static Value get_environment_variable(Context *context, Value name) {
    need_string(context, "get-environment-variable", 1, name);
    const char *value = getenv(esk_file_name(context, "get-environment-variable", 1, name));
    return value ? text(context, value) : ESK_FALSE;
}

static Value get_environment_variables(Context *context) {
    Value list = ESK_NULL;
    for (char **at = environ; at && *at; at++) {
        const char *equal = strchr(*at, '=');
        if (!equal) continue;
        Value name = esk_string_utf8(context, *at, equal - *at);
        list = esk_cons(context, esk_cons(context, name, text(context, equal + 1)), list);
    }
    return list;
}

static Value current_directory(Context *context) {
    for (int64_t room = 256;; room *= 2) {
        Bytevector *bytes = esk_pointer(esk_make_bytevector(context, room, 0));
        if (getcwd((char *)bytes->bytes, (size_t)room)) return text(context, (const char *)bytes->bytes);
        if (errno != ERANGE) esk_file_error(context, "current-directory", text(context, "."), errno);
    }
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

enum { NANOSECONDS = 1000000000 };

static int64_t clock_nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static Value current_second(Context *context) {
    return (void)context, esk_flonum((double)clock_nanoseconds(CLOCK_REALTIME) / NANOSECONDS);
}

static Value current_milliseconds(Context *context) {
    return (void)context, esk_fixnum(clock_nanoseconds(CLOCK_REALTIME) / 1000000);
}

static Value current_jiffy(Context *context) { return (void)context, esk_fixnum(clock_nanoseconds(CLOCK_MONOTONIC)); }
static Value jiffies_per_second(Context *context) { return (void)context, esk_fixnum(NANOSECONDS); }

const Primitive esk_system_primitives[] = {
    ESK_PRIMITIVE_N("%exit", "(%exit [value])", 0, 1, leave,
                    "Ends the program at once: with success for #t or nothing, failure for #f, or the code given."),
    ESK_PRIMITIVE_N("emergency-exit", "(emergency-exit [value])", 0, 1, leave,
                    "Ends the program without running what dynamic-wind has outstanding."),
    ESK_PRIMITIVE_0("command-line", "(command-line)", get_command_line,
                    "The name of the program and its arguments, a list of strings."),
    ESK_PRIMITIVE_1("get-environment-variable", "(get-environment-variable name)", get_environment_variable,
                    "The value of the environment variable, or #f where there is none."),
    ESK_PRIMITIVE_0("get-environment-variables", "(get-environment-variables)", get_environment_variables,
                    "All environment variables, a list of pairs of name and value."),
    ESK_PRIMITIVE_0("current-directory", "(current-directory)", current_directory,
                    "The directory that relative file names start from."),
    ESK_PRIMITIVE_0("current-second", "(current-second)", current_second,
                    "The time in seconds since the beginning of 1970 (UTC), with fractions."),
    ESK_PRIMITIVE_0("current-milliseconds", "(current-milliseconds)", current_milliseconds,
                    "The time in milliseconds since the beginning of 1970 (UTC), an exact integer."),
    ESK_PRIMITIVE_0("current-jiffy", "(current-jiffy)", current_jiffy,
                    "A clock that never goes back, in nanoseconds from some point in the past."),
    ESK_PRIMITIVE_0("jiffies-per-second", "(jiffies-per-second)", jiffies_per_second,
                    "How many jiffies of current-jiffy make a second."),
    {0},
};
