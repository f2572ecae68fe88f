/* Sorts and extremes for any processor. */
#define KIND(name) name##_plain
#define BYTES 16
#include "kinds.h"
