/* What a program that was built ahead of time brings along (src/eshkol/executable/build.py writes it): its code, its
 * constants as text, and the tables by which errors name lines. */
#ifndef ESHKOL_EXECUTABLE_PROGRAM_H
#define ESHKOL_EXECUTABLE_PROGRAM_H

#include "value.h"

#include <stdio.h>

#pragma GCC visibility push(hidden)

enum SiteFlags { SITE_STANDARD = 1, SITE_HIDDEN = 2, SITE_RAISING = 4 };

/* A place in the source from which something is called. Texts are offsets into the program's strings. */
typedef struct {
    uint32_t trace;          /* the line that a backtrace has for it */
    uint32_t file, line, column;
    uint32_t text;           /* the line of the source, or as much of it as is shown */
    uint32_t before, marked; /* characters in front of the caret, and from it on */
    uint32_t flags;
} Site;

/* A procedure on tensors that was compiled with the program (src/eshkol/executable/models.py). */
enum NumberKind { /* in the order of models.py */
    NUMBER_BOOL, NUMBER_INT8, NUMBER_INT16, NUMBER_INT32, NUMBER_INT64, NUMBER_UINT8, NUMBER_UINT16, NUMBER_UINT32,
    NUMBER_FLOAT32, NUMBER_FLOAT64
};
typedef struct {
    int64_t kind, count;
} Numbers;
typedef struct {
    const char *name;
    const void *plan; /* an eshkol_model_plan */
    const Numbers *inputs, *outputs;
    int64_t input_count, output_count;
} BuiltModel;

typedef struct {
    const void *entry;       /* evaluates the program */
    Value *values;           /* constants, and global variables behind them */
    int64_t value_count, constant_count;
    const char *constants;   /* as text */
    int64_t constant_bytes;
    const char *code;        /* what the addresses of the table count from */
    const uint32_t *starts;  /* in ascending order: from here on ... */
    const uint32_t *places;  /* ... code belongs to this site, or to none: NO_SITE */
    int64_t start_count;
    const Site *sites;
    const char *strings;
    const char *hints;       /* rows of three texts: the kind of an error, a pattern of its message, what to do */
    const BuiltModel *const *models;
    int64_t model_count;
} Program;
enum { NO_SITE = -1 };

extern const Program esk_program;

/* Begins the program's context on this thread: its constants are there, nothing has run. Null: there is no memory. */
Context *esk_begin_program(uint64_t heap_limit);
void esk_use_this_thread(Context *); /* stack.c */
/* Runs it on this thread: as esk_enter. */
uint64_t esk_run_program(Context *, Value *result);
/* Writes what an uncaught condition says, and where it was raised; the exit code. */
int esk_report(Context *, Value condition, FILE *);
/* File and line of the innermost of these return addresses that is not in the library; false where there is none. */
bool esk_place_of(const uint64_t *addresses, int64_t count, char *text, size_t room);
/* What %run-built does. */
Value esk_run_built(Context *, Value number, Value arrays);
void esk_tell_hint(FILE *, const char *kind, const char *message);

#pragma GCC visibility pop

#endif
