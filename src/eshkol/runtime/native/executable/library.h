/* What a C library of Scheme procedures is made of; the file of its exports is written when it is built
 * (src/eshkol/executable/library.py). */
#ifndef ESHKOL_EXECUTABLE_LIBRARY_H
#define ESHKOL_EXECUTABLE_LIBRARY_H

#include "program.h"

#include <math.h>

#pragma GCC visibility push(hidden)

/* What C knows of a value: the types that declarations name, or all of it. A value is a place that the caller holds on
 * to. */
enum Kind { KIND_REAL, KIND_INTEGER, KIND_BOOLEAN, KIND_STRING, KIND_VALUE, KIND_NOTHING };

typedef struct {
    enum Kind kind;
    union { double real; int64_t integer; const char *string; const Value *value; } of;
} Argument;

typedef struct {
    const char *name;
    int64_t index; /* of its variable, among the program's values */
} Export;

extern const Export esk_exports[]; /* the last has no name */

/* Calls the procedure that a variable holds; the result is of the kind that is wanted. False: it failed, and
 * esk_library_error says why. From any thread, one call after the other. */
bool esk_library_call(const Export *, const Argument *, int count, enum Kind, Argument *result);
const Export *esk_library_find(const char *name); /* null, with an error */
/* What went wrong in this thread's last call, or null. */
const char *esk_library_error(void);
/* A value of what a number or a text is; null where there is no memory. */
Value *esk_library_value(const Argument *);
/* The reverse; false, with an error, where it is something else. */
bool esk_library_as(const Value *, enum Kind, Argument *result);
/* The value as `write` shows it, until this thread's next call. */
const char *esk_library_text(const Value *);
void esk_library_release(Value *);

#pragma GCC visibility pop

#endif
