/* CRC-64/XZ of bytes: the checksum of checkpoints (docs/eskpt.md). */
#ifndef ESHKOL_CRC64_H
#define ESHKOL_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `checksum` is of, followed by these bytes; 0 is the checksum of nothing. Any number of threads
   may call it. */
uint64_t eshkol_crc64(uint64_t checksum, const uint8_t *bytes, size_t size);

/* The same, as it is computed on every processor; for tests. */
uint64_t eshkol_crc64_by_tables(uint64_t checksum, const uint8_t *bytes, size_t size);

#endif
