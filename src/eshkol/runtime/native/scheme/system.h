/* For the host: the process as Scheme sees it. See system.c. */
#ifndef ESHKOL_SCHEME_SYSTEM_H
#define ESHKOL_SCHEME_SYSTEM_H

#include "value.h"

/* What `exit` was given, as the code of a process: 0 to 255. */
int esk_exit_code(Value);
/* The words of (command-line), copied. 0, or -1 when there is no memory. Call it before other threads run Scheme. */
int64_t esk_set_command_line(const char *const *words, int64_t count);

#endif
