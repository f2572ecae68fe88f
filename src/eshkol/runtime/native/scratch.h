/* Memory to work in, which is kept when it is given back: the C library returns large pieces to the system at once, and
   fresh pages cost as much as what is done in them. */
#ifndef ESHKOL_SCRATCH_H
#define ESHKOL_SCRATCH_H

#include <stddef.h>

/* So many bytes, on a boundary of 64; NULL where there are none. Any number of threads may ask. */
void *eshkol_scratch_take(size_t size);

/* What was taken goes back; NULL is nothing. */
void eshkol_scratch_give(void *memory);

/* Nothing is kept any more. */
void eshkol_scratch_clear(void);

#endif
