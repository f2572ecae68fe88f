/* Whether what a driver allocated is free again when it ends, to the byte, by the count of the address sanitizer. Its
   own search for leaks takes seconds on some processors, however little there is to search. */
#ifndef HELD_H
#define HELD_H
#include <stddef.h>
#include <stdio.h>

size_t __sanitizer_get_current_allocated_bytes(void);

/* Said at the end, with how many bytes were held at the beginning: the status that the process ends with. */
static int finished(const char *driver, size_t before)
{
    const size_t held = __sanitizer_get_current_allocated_bytes();
    if (held != before) {
        printf("%s: %zu bytes were held in the beginning, %zu are in the end\n", driver, before, held);
        return 1;
    }
    printf("%s: right\n", driver);
    return 0;
}
#endif
