/* Files and folders beyond opening them, the environment, random bytes and the local time, for (eshkol files),
 * (eshkol digests) and (srfi 19): each what the system does, with its reason where it does not. Compare ports.c. */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include "ports.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "utf8.h"

#if defined(_WIN32) || defined(__wasm__)

static Value missing(Context *context, const Value *args, int64_t count) {
    (void)args, (void)count;
    esk_fail(context, ERROR_SYSTEM, NULL, "this system has no POSIX files", 0);
}
#define ROW(name, signature, min, max, function, doc) ESK_PRIMITIVE_N(name, signature, min, max, missing, doc)

#else

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW ESK_PRIMITIVE_N

static Value text(Context *context, const char *bytes) {
    return esk_string_utf8(context, bytes, (int64_t)strlen(bytes));
}

/* What the system calls a file, as a string; a name that no string can hold is an error and not another name. */
static Value name_text(Context *context, const char *who, Value folder, const char *name) {
    const uint8_t *at = (const uint8_t *)name, *end = at + strlen(name);
    for (uint32_t code; at < end;) {
        int bytes = esk_utf8_decode(at, end, &code);
        if (!bytes || (code == 0xFFFD && !(bytes == 3 && at[0] == 0xEF && at[1] == 0xBF && at[2] == 0xBD)))
            esk_fail(context, ERROR_FILE, who, "there is a name that is not UTF-8", 2, folder, text(context, name));
        at += bytes;
    }
    return text(context, name);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static const char *kind_of(mode_t mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "directory";
    if (S_ISLNK(mode)) return "link";
    if (S_ISFIFO(mode)) return "pipe";
    if (S_ISSOCK(mode)) return "socket";
    return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "other";
}

#ifdef __APPLE__
#define STAMP(about, which) \
    ((int64_t)(about).st_##which##timespec.tv_sec * 1000000000 + (about).st_##which##timespec.tv_nsec)
#else
#define STAMP(about, which) ((int64_t)(about).st_##which##tim.tv_sec * 1000000000 + (about).st_##which##tim.tv_nsec)
#endif

static Value file_information(Context *context, const Value *args, int64_t count) {
    static const char who[] = "file-info";
    (void)count;
    const char *path = esk_file_name(context, who, 1, args[0]);
    struct stat about;
    if ((esk_is_false(args[1]) ? lstat : stat)(path, &about) < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return ESK_FALSE;
        esk_file_error(context, who, args[0], errno);
    }
    const char *kind = kind_of(about.st_mode);
    Value facts[] = {
        esk_symbol(context, kind, (int64_t)strlen(kind)), esk_fixnum((int64_t)about.st_size),
        esk_fixnum(STAMP(about, m)), esk_fixnum(STAMP(about, a)), esk_fixnum(STAMP(about, c)),
        esk_fixnum((int64_t)(about.st_mode & 07777)), esk_fixnum((int64_t)about.st_uid),
        esk_fixnum((int64_t)about.st_gid), esk_fixnum((int64_t)about.st_dev), esk_fixnum((int64_t)about.st_ino),
        esk_fixnum((int64_t)about.st_nlink),
    };
    return esk_list(context, facts, sizeof facts / sizeof *facts);
}

static Value can_access(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "file-accessible?", 1, args[0]);
    int64_t mode = need_index(context, "file-accessible?", 2, args[1], 8);
    return esk_boolean(access(path, (mode & 4 ? R_OK : 0) | (mode & 2 ? W_OK : 0) | (mode & 1 ? X_OK : 0)) == 0);
}

/* The names are gathered outside of the heap, so that the folder is closed before there is anything to fail. */
static Value directory_list(Context *context, const Value *args, int64_t count) {
    static const char who[] = "directory-list";
    (void)count;
    DIR *folder = opendir(esk_file_name(context, who, 1, args[0]));
    if (!folder) esk_file_error(context, who, args[0], errno);
    char *names = NULL;
    size_t used = 0, room = 0;
    struct dirent *entry;
    for (errno = 0; (entry = readdir(folder)); errno = 0) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        size_t bytes = strlen(name) + 1;
        if (room - used < bytes) {
            room = (used + bytes) * 2;
            char *more = realloc(names, room);
            if (!more) break;
            names = more;
        }
        memcpy(names + used, name, bytes);
        used += bytes;
    }
    int error = entry ? ENOMEM : errno;
    closedir(folder);
    Value kept = ESK_FALSE;
    if (!error) { /* the heap may be full: what was gathered is freed before anything else is made */
        kept = esk_make_bytevector(context, (int64_t)used, 0);
        if (used) memcpy(((Bytevector *)esk_pointer(kept))->bytes, names, used);
    }
    free(names);
    if (error) esk_file_error(context, who, args[0], error);
    const char *at = (const char *)((Bytevector *)esk_pointer(kept))->bytes, *end = at + used;
    Value list = ESK_NULL;
    for (; at < end; at += strlen(at) + 1) list = esk_cons(context, name_text(context, who, args[0], at), list);
    return list;
}

static Value create_directory(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "create-directory", 1, args[0]);
    if (mkdir(path, 0777) < 0) esk_file_error(context, "create-directory", args[0], errno);
    return ESK_UNSPECIFIED;
}

static Value delete_directory(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "delete-directory", 1, args[0]);
    if (rmdir(path) < 0) esk_file_error(context, "delete-directory", args[0], errno);
    return ESK_UNSPECIFIED;
}

static Value set_mode(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "set-file-mode!", 1, args[0]);
    int64_t mode = need_index(context, "set-file-mode!", 2, args[1], 010000);
    if (chmod(path, (mode_t)mode) < 0) esk_file_error(context, "set-file-mode!", args[0], errno);
    return ESK_UNSPECIFIED;
}

static Value make_link(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *to = esk_file_name(context, "create-link", 1, args[0]);
    const char *path = esk_file_name(context, "create-link", 2, args[1]);
    if (symlink(to, path) < 0) esk_file_error(context, "create-link", args[1], errno);
    return ESK_UNSPECIFIED;
}

static Value read_link(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "read-link", 1, args[0]);
    for (int64_t room = 256;; room *= 2) {
        Bytevector *bytes = esk_pointer(esk_make_bytevector(context, room, 0));
        ssize_t used = readlink(path, (char *)bytes->bytes, (size_t)room);
        if (used < 0) esk_file_error(context, "read-link", args[0], errno);
        if (used < room) return name_text(context, "read-link", args[0], (const char *)bytes->bytes);
    }
}

static Value real_path(Context *context, const Value *args, int64_t count) {
    (void)count;
    char found[PATH_MAX];
    if (!realpath(esk_file_name(context, "real-path", 1, args[0]), found))
        esk_file_error(context, "real-path", args[0], errno);
    return name_text(context, "real-path", args[0], found);
}

/* Behind what a file holds; in one piece where the system takes it as one. */
static Value append_bytes(Context *context, const Value *args, int64_t count) {
    static const char who[] = "append-to-file";
    (void)count;
    const char *path = esk_file_name(context, who, 1, args[0]);
    Bytevector *bytes = need_bytevector(context, who, 2, args[1]);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666), error = 0;
    if (descriptor < 0) esk_file_error(context, who, args[0], errno);
    for (int64_t at = 0; !error && at < bytes->length;) {
        ssize_t n = write(descriptor, bytes->bytes + at, (size_t)(bytes->length - at));
        if (n >= 0) at += n;
        else if (errno != EINTR) error = errno;
    }
    if (close(descriptor) < 0 && !error && errno != EINTR) error = errno;
    if (error) esk_file_error(context, who, args[0], error);
    return ESK_UNSPECIFIED;
}

/* A new empty file, or folder, whose name begins as is said. */
static Value make_temporary(Context *context, const Value *args, int64_t count) {
    static const char who[] = "create-temporary-file";
    (void)count;
    const char *prefix = esk_file_name(context, who, 1, args[0]);
    size_t bytes = strlen(prefix);
    Bytevector *path = esk_pointer(esk_make_bytevector(context, (int64_t)bytes + 7, 0));
    memcpy(path->bytes, prefix, bytes);
    memcpy(path->bytes + bytes, "XXXXXX", 7);
    if (esk_is_false(args[1])) {
        int descriptor = mkstemp((char *)path->bytes);
        if (descriptor < 0) esk_file_error(context, who, args[0], errno);
        close(descriptor);
    } else if (!mkdtemp((char *)path->bytes)) {
        esk_file_error(context, "create-temporary-directory", args[0], errno);
    }
    return text(context, (const char *)path->bytes);
}

/* ---- the process ------------------------------------------------------------------------------------------------ */

static Value set_current_directory(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *path = esk_file_name(context, "set-current-directory!", 1, args[0]);
    if (chdir(path) < 0) esk_file_error(context, "set-current-directory!", args[0], errno);
    return ESK_UNSPECIFIED;
}

static Value set_environment(Context *context, const Value *args, int64_t count) {
    static const char who[] = "set-environment-variable!";
    (void)count;
    const char *name = esk_file_name(context, who, 1, args[0]);
    int failed = esk_is_false(args[1]) ? unsetenv(name) : setenv(name, esk_file_name(context, who, 2, args[1]), 1);
    if (failed) esk_fail(context, ERROR_SYSTEM, who, strerror(errno), 1, args[0]);
    return ESK_UNSPECIFIED;
}

static Value random_bytes(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t wanted = need_size(context, "random-bytes", 1, args[0]);
    Value made = esk_make_bytevector(context, wanted, 0);
    uint8_t *at = ((Bytevector *)esk_pointer(made))->bytes;
    for (int64_t piece; wanted > 0; wanted -= piece, at += piece) {
        piece = wanted < 256 ? wanted : 256; /* as many as the system gives at once */
        if (getentropy(at, (size_t)piece) < 0)
            esk_fail(context, ERROR_SYSTEM, "random-bytes", strerror(errno), 0);
    }
    return made;
}

static Value local_zone(Context *context, const Value *args, int64_t count) {
    (void)count;
    if (!esk_is(args[0], TAG_FIXNUM)) esk_wrong_type(context, "local-offset", 1, args[0], "seconds since 1970");
    time_t then = (time_t)esk_integer(args[0]);
    struct tm local;
    tzset();
    if (!localtime_r(&then, &local))
        esk_fail(context, ERROR_RANGE, "local-offset", "the system knows no local time for this moment", 1, args[0]);
    Value zone = text(context, local.tm_zone ? local.tm_zone : "");
    return esk_cons(context, esk_fixnum((int64_t)local.tm_gmtoff), zone);
}

/* 0: the time since 1970, 1: the processor time of the process, 2: that of the thread */
static Value clock_nanoseconds(Context *context, const Value *args, int64_t count) {
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    struct timespec now;
    (void)count;
    if (clock_gettime(clocks[need_index(context, "%clock-nanoseconds", 1, args[0], 3)], &now) < 0)
        esk_fail(context, ERROR_SYSTEM, "current-time", strerror(errno), 0);
    return esk_fixnum((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

#endif

const Primitive esk_files_primitives[] = {
    ROW("%file-info", "(%file-info path follow?)", 2, 2, file_information,
        "What the system knows of a file: kind, size, times of change, use and status in nanoseconds since 1970, mode, "
        "user, group, device, number on it and links, in a list; #f where there is none."),
    ROW("%file-access", "(%file-access path mode)", 2, 2, can_access,
        "Whether this process may read (4), write (2) and execute (1) the file."),
    ROW("%directory-list", "(%directory-list path)", 1, 1, directory_list,
        "The names in a folder but . and .., in no order."),
    ROW("%create-directory", "(%create-directory path)", 1, 1, create_directory, "Make a folder."),
    ROW("%delete-directory", "(%delete-directory path)", 1, 1, delete_directory, "Remove an empty folder."),
    ROW("%set-file-mode!", "(%set-file-mode! path mode)", 2, 2, set_mode, "Change who may do what with a file."),
    ROW("%create-link", "(%create-link to path)", 2, 2, make_link, "Make a symbolic link."),
    ROW("%read-link", "(%read-link path)", 1, 1, read_link, "Where a symbolic link leads."),
    ROW("%real-path", "(%real-path path)", 1, 1, real_path, "The absolute path without links, . and .. in it."),
    ROW("%append-to-file", "(%append-to-file path bytes)", 2, 2, append_bytes, "Write bytes behind the end of a file."),
    ROW("%create-temporary", "(%create-temporary prefix folder?)", 2, 2, make_temporary,
        "The path of a new empty file (or folder) that begins with the prefix."),
    ROW("%set-current-directory!", "(%set-current-directory! path)", 1, 1, set_current_directory,
        "Change the folder that relative file names start from, for the whole process."),
    ROW("%set-environment-variable!", "(%set-environment-variable! name value)", 2, 2, set_environment,
        "Give an environment variable another value, or with #f none."),
    ROW("%random-bytes", "(%random-bytes count)", 1, 1, random_bytes, "Random bytes from the operating system."),
    ROW("%local-zone", "(%local-zone seconds)", 1, 1, local_zone,
        "How many seconds the local time is ahead of UTC at a moment, and what its zone is called there."),
    ROW("%clock-nanoseconds", "(%clock-nanoseconds which)", 1, 1, clock_nanoseconds,
        "The time since 1970 (0), or the processor time of the process (1) or of the thread (2), in nanoseconds."),
    {0},
};
