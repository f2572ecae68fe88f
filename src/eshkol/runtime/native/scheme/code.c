/* Memory for compiled code: executable pages and, behind them, pages of data, so that each reaches the other by offsets
 * of 32 bits. The executable pages are never writable: they are written through a second view of the same memory. */
#define _GNU_SOURCE
#include "code.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void esk_free_region(Region *region) {
    if (region->code) munmap(region->code, 2 * region->size);
    if (region->writer) munmap(region->writer, region->size);
    free(region);
}

Region *esk_new_region(size_t size) {
    Region *region = calloc(1, sizeof *region);
    if (!region) return NULL;
    int file = (int)syscall(SYS_memfd_create, "eshkol-code", 1u /* closed on exec */);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) goto failed;
    region->size = size;
    region->owner = getpid();
    void *whole = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) goto failed;
    region->code = whole;
    if (mmap(whole, size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) goto failed;
    if (mprotect(region->code + size, size, PROT_READ | PROT_WRITE) != 0) goto failed;
    void *writer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (writer == MAP_FAILED) goto failed;
    region->writer = writer;
    close(file);
    return region;
failed:
    if (file >= 0) close(file);
    esk_free_region(region);
    return NULL;
}
