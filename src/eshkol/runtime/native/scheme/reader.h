/* The reader: data from text. See reader.c; esk_read_text stands in value.h. */
#ifndef ESHKOL_SCHEME_READER_H
#define ESHKOL_SCHEME_READER_H

#include "value.h"

struct Port;

/* The next datum of a textual input port, or the end-of-file object. */
Value esk_read_port(Context *, struct Port *);

/* Reads up to `room` data of a text into `out`, whose places must be roots, and says how many there were. `literal`:
 * strings, vectors and bytevectors become constants, which cannot be changed. */
int64_t esk_read_all(Context *, const char *utf8, int64_t bytes, Value *out, int64_t room, int64_t literal);

#endif
