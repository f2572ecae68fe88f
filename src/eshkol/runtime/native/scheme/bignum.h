/* Natural numbers as arrays of limbs (natural.c, division.c) and exact integers as values (bignum.c, integer_text.c).
 *
 * A natural number is `n` limbs, least first. The functions named natural_* do not allocate: who calls them gives the
 * room. Those named integer_* take and give values that are fixnums or bignums, and give a fixnum wherever one fits.
 */
#ifndef ESHKOL_SCHEME_BIGNUM_H
#define ESHKOL_SCHEME_BIGNUM_H

#include "value.h"

#pragma GCC visibility push(hidden)

typedef uint64_t Limb;
typedef unsigned __int128 Wide;
typedef __int128 SignedWide;

enum { LIMB_BITS = 64, STACK_LIMBS = 72 /* scratch up to so many limbs is on the stack */ };
#define LIMBS_MAXIMUM ((size_t)1 << 31) /* of one integer */

/* ---- natural numbers (natural.c) -------------------------------------------------------------------------------- */

/* Long work looks up now and then whether somebody interrupts it; all its memory is the collector's. */
enum { POLLED = 2048 /* limbs */ };
static inline void natural_look_up(Context *context) {
    if (context->interrupted) esk_poll(context);
}

size_t natural_trim(const Limb *a, size_t n); /* the count without zeros on top */
int natural_compare(const Limb *a, size_t n, const Limb *b, size_t m); /* both trimmed */
/* r may be a. n >= m; the carry or borrow out of the top is given back. */
Limb natural_add(Limb *r, const Limb *a, size_t n, const Limb *b, size_t m);
Limb natural_subtract(Limb *r, const Limb *a, size_t n, const Limb *b, size_t m);
Limb natural_add_limb(Limb *r, const Limb *a, size_t n, Limb w);
Limb natural_subtract_limb(Limb *r, const Limb *a, size_t n, Limb w);
Limb natural_multiply_limb(Limb *r, const Limb *a, size_t n, Limb w, Limb carry); /* r = a w + carry */
Limb natural_add_multiple(Limb *r, const Limb *a, size_t n, Limb w);      /* r += a w */
Limb natural_subtract_multiple(Limb *r, const Limb *a, size_t n, Limb w); /* r -= a w */
Limb natural_shift_left(Limb *r, const Limb *a, size_t n, unsigned bits);  /* 0 <= bits < 64; r may be a, or above it */
Limb natural_shift_right(Limb *r, const Limb *a, size_t n, unsigned bits); /* r may be a, or below it */
/* r gets n + m limbs and overlaps nothing; n >= m >= 1. Same a and b: a square, which is cheaper. */
void natural_multiply(Context *, Limb *r, const Limb *a, size_t n, const Limb *b, size_t m, Limb *scratch);
size_t natural_multiply_scratch(size_t n, size_t m); /* how many limbs of scratch that takes */

/* ---- their division (division.c) -------------------------------------------------------------------------------- */

Limb natural_reciprocal(Limb d); /* of a limb with its top bit set */
/* q = a / d, the remainder is given back; q may be a. */
Limb natural_divide_limb(Limb *q, const Limb *a, size_t n, Limb d);
/* a has n + m + 1 limbs, the topmost one free; b has n >= 2 limbs, the topmost one not zero. q gets m + 1 limbs, and
 * the remainder is left in the first n limbs of a. `b` is shifted while this runs. */
void natural_divide(Context *, Limb *q, Limb *a, size_t m, Limb *b, size_t n, Limb *scratch);
size_t natural_divide_scratch(size_t m, size_t n);
Limb natural_gcd_limb(Limb a, Limb b);
/* The greatest common divisor of two trimmed numbers that are not zero, n >= m, in a; its count. Both are used up;
 * each has a limb to spare. */
size_t natural_gcd(Context *, Limb *a, size_t n, Limb *b, size_t m, Limb *scratch);
size_t natural_gcd_scratch(size_t n);

/* ---- exact integers (bignum.c) ---------------------------------------------------------------------------------- */

typedef struct { const Limb *limbs; size_t count; bool negative; } View;

static inline bool is_integer(Value v) { return v.tag == TAG_FIXNUM || v.tag == TAG_BIGNUM; }
static inline bool fixnum_is(Value v, int64_t n) { return v.tag == TAG_FIXNUM && esk_integer(v) == n; }
static inline Limb fixnum_magnitude(int64_t n) { return n < 0 ? -(Limb)n : (Limb)n; }

/* The sign and limbs of an integer; those of a fixnum are put into *room. */
static inline View view(Value v, Limb *room) {
    if (v.tag == TAG_FIXNUM) {
        *room = fixnum_magnitude(esk_integer(v));
        return (View){room, *room != 0, esk_integer(v) < 0};
    }
    const Bignum *b = esk_pointer(v);
    return (View){b->limbs, b->head.count, (b->head.flags & FLAG_NEGATIVE) != 0};
}

Limb *integer_scratch(Context *, size_t limbs); /* memory that the collector looks after */
Bignum *integer_room(Context *, size_t limbs);  /* raises a condition when there can be no such number */
Value integer_finish(Bignum *, size_t count, bool negative); /* trims; a fixnum where it fits */
Value integer_from_limbs(Context *, const Limb *, size_t count, bool negative);
Value integer_from_wide(Context *, SignedWide);
Value integer_from_limb(Context *, Limb);
int integer_sign(Value);
int integer_compare(Value, Value);
bool integer_odd(Value);
uint64_t integer_length(Value); /* bits of the magnitude */
Value integer_add(Context *, Value, Value);
Value integer_subtract(Context *, Value, Value);
Value integer_multiply(Context *, Value, Value);
Value integer_negate(Context *, Value);
Value integer_magnitude(Context *, Value);
/* Truncating; the divisor is not zero. Either place may be null. */
void integer_divide(Context *, Value a, Value b, Value *quotient, Value *remainder);
Value integer_floor_divide(Context *, Value a, Value b, Value *remainder);
Value integer_exact_quotient(Context *, Value a, Value b);
Value integer_gcd(Context *, Value, Value);
Value integer_shift(Context *, Value, int64_t bits); /* to the left; to the right it rounds down */
Value integer_root(Context *, Value n, Value *rest); /* the floor of a square root; n >= 0 */
/* A number of so many times `bits` bits is on its way: if there is no memory for it, raises that condition before the
 * work is done. */
void integer_expect(Context *, uint64_t bits, uint64_t times, const char *who);
Value integer_power(Context *, Value base, uint64_t exponent, const char *who);
Value integer_bitwise(Context *, int operation, Value, Value); /* '&', '|' or '^' on two's complement */
uint64_t integer_bit_count(Value); /* ones of the two's complement; of a negative number, of its complement */
double integer_double(Value);                            /* rounded to nearest, ties to even */
double integer_ratio(Context *, Value n, Value d);       /* n / d, rounded so; d > 0 */
Value integer_from_double(Context *, double);            /* of a finite whole number */
double double_from_parts(Limb high, bool sticky, int64_t exponent); /* high 2^exponent and a bit more, rounded */
uint64_t integer_trailing_zeros(Value); /* of a number that is not zero */

/* ---- and their digits (integer_text.c) -------------------------------------------------------------------------- */

/* `count` digits that are known to be right for the radix. */
Value integer_parse(Context *, const char *digits, size_t count, int radix);
size_t integer_digits_room(Value, int radix); /* bytes that the digits and the sign need at most */
size_t integer_digits(Context *, Value, int radix, char *room); /* how many were written */
int digit_value(unsigned char); /* 0 to 35, or 99 */

#pragma GCC visibility pop

#endif
