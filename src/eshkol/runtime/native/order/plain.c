/* Sorts and extremes for any processor. */
#define KIND(name) name##_plain
#define VECTOR 16
#include "kinds.h"
