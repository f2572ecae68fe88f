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
void esk_tell_hint(FILE *, const char *kind, const char *message);

#pragma GCC visibility pop

#endif
