/* Sorts for any processor. */
#define ROWS eshkol_order_rows_plain
#define BYTES 16
#include "kinds.h"
