/* Memory for compiled code (code.c), and the units in it that are collected (units.c).
 *
 * Code of libraries and programs stays until the engine ends that loaded it. What `eval` or a prompt compiles is a unit
 * of its own, which goes when nothing refers to it any more: no closure whose entry lies in it, no static closure of
 * its data, no return address on a stack or in a captured continuation, no trace of an error. All units of a heap lie
 * in one region, so that a word is known not to point there by one comparison. */
#ifndef ESHKOL_SCHEME_CODE_H
#define ESHKOL_SCHEME_CODE_H

#include "heap.h"

#include <sys/types.h>

typedef struct Region {
    struct Region *next;
    size_t size;     /* of the code, and of the data */
    uint8_t *code;   /* executable; the data are at code + size */
    uint8_t *writer; /* the same memory, writable */
    size_t code_used, data_used;
    pid_t owner; /* a process forked from this one shares the memory, and must not write there */
} Region;

Region *esk_new_region(size_t size); /* null where there is no memory, or none that can be executed */
void esk_free_region(Region *);

/* For the linker: a region whose code and data are free from code_used = data_used on for so many bytes, or null; and
 * that a unit was put there, which ends where they are used up now. */
Region *esk_room_for_unit(Context *, size_t bytes);
bool esk_add_unit(Context *, size_t object_bytes);

#endif
