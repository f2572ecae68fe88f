/* Division and greatest common divisors of natural numbers as arrays of limbs. Nothing here allocates.
 * Quotients: Knuth's algorithm D with a reciprocal of the two top limbs (Möller and Granlund, "Improved division by
 * invariant integers"), and above a threshold the recursion of Burnikel and Ziegler, which is as fast as the products.
 * Divisors: Lehmer's algorithm.
 */
#include "bignum.h"

enum { RECURSIVE = 40 };

/* floor((2^128 - 1) / d) - 2^64 */
Limb natural_reciprocal(Limb d) { return (Limb)((((Wide)~d << 64) | ~(Limb)0) / d); }

/* (high, low) / d for high < d. */
static inline Limb divide_2_by_1(Limb high, Limb low, Limb d, Limb v, Limb *remainder) {
    Wide q = (Wide)v * high + (((Wide)high << 64) | low);
    Limb q1 = (Limb)(q >> 64) + 1, q0 = (Limb)q, r = low - q1 * d;
    if (r > q0) {
        q1--;
        r += d;
    }
    if (__builtin_expect(r >= d, 0)) {
        q1++;
        r -= d;
    }
    *remainder = r;
    return q1;
}

static Limb reciprocal_3_by_2(Limb d1, Limb d0) {
    Limb v = natural_reciprocal(d1), p = d1 * v + d0;
    if (p < d0) {
        v--;
        if (p >= d1) {
            v--;
            p -= d1;
        }
        p -= d1;
    }
    Wide t = (Wide)v * d0;
    p += (Limb)(t >> 64);
    if (p < (Limb)(t >> 64)) {
        v--;
        if ((((Wide)p << 64) | (Limb)t) >= (((Wide)d1 << 64) | d0)) v--;
    }
    return v;
}

Limb natural_divide_limb(Limb *q, const Limb *a, size_t n, Limb d) {
    unsigned shift = (unsigned)__builtin_clzll(d);
    d <<= shift;
    Limb v = natural_reciprocal(d), r = 0;
    if (!shift) {
        for (size_t i = n; i--;) q[i] = divide_2_by_1(r, a[i], d, v, &r);
        return r;
    }
    if (n) r = a[n - 1] >> (64 - shift);
    for (size_t i = n; i--;) q[i] = divide_2_by_1(r, a[i] << shift | (i ? a[i - 1] >> (64 - shift) : 0), d, v, &r);
    return r >> shift;
}

/* a: n + m limbs, b: n >= 2 limbs with the top bit set, q: m limbs. The remainder is left in a; a quotient's limb
 * above those of q, 0 or 1, is given back. */
static Limb divide_rows(Limb *q, Limb *a, size_t m, const Limb *b, size_t n) {
    Limb top = 0;
    Limb *high = a + m;
    size_t i = n;
    while (i && high[i - 1] == b[i - 1]) i--;
    if (!i || high[i - 1] > b[i - 1]) {
        natural_subtract(high, high, n, b, n);
        top = 1;
    }
    Limb d1 = b[n - 1], d0 = b[n - 2], v = reciprocal_3_by_2(d1, d0);
    for (size_t j = m; j--;) {
        Limb u2 = a[j + n], u1 = a[j + n - 1], u0 = a[j + n - 2], digit;
        if (__builtin_expect(u2 == d1 && u1 == d0, 0)) {
            digit = ~(Limb)0;
            natural_subtract_multiple(a + j, b, n, digit);
            /* the difference is what the divisor's multiple leaves; its top limb vanishes */
        } else {
            Wide t = (Wide)v * u2 + (((Wide)u2 << 64) | u1);
            Limb q0 = (Limb)t;
            digit = (Limb)(t >> 64);
            Wide r = (((Wide)(u1 - digit * d1) << 64) | u0) - (Wide)d0 * digit - (((Wide)d1 << 64) | d0);
            digit++;
            if ((Limb)(r >> 64) >= q0) {
                digit--;
                r += ((Wide)d1 << 64) | d0;
            }
            if (__builtin_expect(r >= (((Wide)d1 << 64) | d0), 0)) {
                digit++;
                r -= ((Wide)d1 << 64) | d0;
            }
            Limb borrow = natural_subtract_multiple(a + j, b, n - 2, digit);
            Limb r1 = (Limb)(r >> 64), r0 = (Limb)r, under = r0 < borrow;
            r0 -= borrow;
            borrow = r1 < under;
            r1 -= under;
            a[j + n - 2] = r0;
            a[j + n - 1] = r1;
            if (__builtin_expect(borrow != 0, 0)) {
                digit--;
                natural_add(a + j, a + j, n, b, n);
            }
        }
        a[j + n] = 0;
        q[j] = digit;
    }
    return top;
}

/* r = a b, whichever is longer. */
static void product(Context *context, Limb *r, const Limb *a, size_t n, const Limb *b, size_t m, Limb *scratch) {
    if (n >= m) natural_multiply(context, r, a, n, b, m, scratch);
    else natural_multiply(context, r, b, m, a, n, scratch);
}

/* As divide_rows, for m <= n. */
static Limb divide_balanced(Context *context, Limb *q, Limb *a, size_t m, const Limb *b, size_t n, Limb *scratch) {
    if (m < RECURSIVE) return divide_rows(q, a, m, b, n);
    size_t k = m / 2, l = m - k;
    Limb *t = scratch, *rest = scratch + m;
    Limb top = divide_balanced(context, q + k, a + 2 * k, l, b + k, n - k, scratch);
    product(context, t, q + k, l, b, k, rest);
    Limb borrow = natural_subtract(a + k, a + k, n, t, m);
    if (top) borrow += natural_subtract(a + m, a + m, n + k - m, b, k);
    while (borrow) {
        top -= natural_subtract_limb(q + k, q + k, l, 1);
        borrow -= natural_add(a + k, a + k, n, b, n);
    }
    Limb low = divide_balanced(context, q, a + k, k, b + k, n - k, scratch);
    product(context, t, q, k, b, k, rest);
    borrow = natural_subtract(a, a, n, t, 2 * k);
    if (low) borrow += natural_subtract(a + k, a + k, n - k, b, k);
    while (borrow) {
        low -= natural_subtract_limb(q, q, k, 1);
        borrow -= natural_add(a, a, n, b, n);
    }
    return top; /* low is zero now: what was left was less than b 2^(64 k) */
}

size_t natural_divide_scratch(size_t m, size_t n) {
    size_t piece = m + 1 < n ? m + 1 : n;
    if (piece < RECURSIVE) return 0;
    size_t half = (piece + 1) / 2;
    /* the second product is of k <= half limbs each, the first of l and k; smaller ones never need more */
    return piece + natural_multiply_scratch(half, half) + natural_multiply_scratch(half, piece / 2);
}

void natural_divide(Context *context, Limb *q, Limb *a, size_t m, Limb *b, size_t n, Limb *scratch) {
    unsigned shift = (unsigned)__builtin_clzll(b[n - 1]);
    a[n + m] = natural_shift_left(a, a, n + m, shift);
    natural_shift_left(b, b, n, shift);
    /* a's topmost limb is less than b's, so that the quotient has no limb above these */
    size_t limbs = m + 1;
    if (limbs < RECURSIVE || n < RECURSIVE) {
        divide_rows(q, a, limbs, b, n);
    } else {
        size_t first = limbs % n ? limbs % n : n, done = limbs - first;
        divide_balanced(context, q + done, a + done, first, b, n, scratch);
        while (done) {
            done -= n;
            divide_balanced(context, q + done, a + done, n, b, n, scratch);
        }
    }
    natural_shift_right(a, a, n, shift);
    natural_shift_right(b, b, n, shift);
}

/* ---- greatest common divisors ----------------------------------------------------------------------------------- */

Limb natural_gcd_limb(Limb a, Limb b) {
    if (!a || !b) return a | b;
    int shift = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    while (b) {
        b >>= __builtin_ctzll(b);
        Limb less = a < b ? a : b, difference = a < b ? b - a : a - b;
        a = less;
        b = difference;
    }
    return a << shift;
}

/* 62 bits from the top of a, and those of b at the same places. */
static void leading_bits(const Limb *a, size_t n, const Limb *b, size_t m, int64_t *x, int64_t *y) {
    unsigned spare = (unsigned)__builtin_clzll(a[n - 1]);
    Limb above[2] = {0, 0};
    const Limb *of[2] = {a, b};
    size_t counts[2] = {n, m};
    for (int i = 0; i < 2; i++) {
        Limb high = counts[i] == n ? of[i][n - 1] : 0, low = counts[i] >= n - 1 ? of[i][n - 2] : 0;
        above[i] = spare ? high << spare | low >> (64 - spare) : high;
    }
    *x = (int64_t)(above[0] >> 2);
    *y = (int64_t)(above[1] >> 2);
}

typedef struct { int64_t a, b, c, d; unsigned steps; } Cofactors;

/* As many of Euclid's steps as the leading bits alone decide. */
static Cofactors lehmer(int64_t x, int64_t y) {
    Cofactors f = {1, 0, 0, 1, 0};
    for (;; f.steps++) {
        if (y == f.c) break;
        int64_t q = (x + (f.a - 1)) / (y - f.c), s, t, u;
        if (__builtin_mul_overflow(q, f.d, &s) || __builtin_mul_overflow(q, y, &t)) break;
        s += f.b;
        t = x - t;
        if (s > t) break;
        x = y;
        y = t;
        u = f.a + q * f.c;
        f.a = f.d;
        f.b = f.c;
        f.c = s;
        f.d = u;
    }
    return f;
}

static inline SignedWide times(Limb w, int64_t factor) {
    Wide product = (Wide)w * (Limb)factor; /* as if it were not negative: then 2^64 w too much */
    return (SignedWide)(factor < 0 ? product - ((Wide)w << 64) : product);
}

size_t natural_gcd_scratch(size_t n) { return n + 2 + natural_divide_scratch(n, n); }

size_t natural_gcd(Context *context, Limb *a, size_t n, Limb *b, size_t m, Limb *scratch) {
    Limb *result = a;
    while (m > 1) {
        Cofactors f = {.steps = 0};
        if (n >= POLLED) natural_look_up(context);
        if (n <= m + 1) {
            int64_t x, y;
            leading_bits(a, n, b, m, &x, &y);
            f = lehmer(x, y);
        }
        if (!f.steps) {
            natural_divide(context, scratch, a, n - m, b, m, scratch + n + 2);
            size_t rest = natural_trim(a, m);
            Limb *swap = a;
            a = b;
            b = swap;
            n = m;
            m = rest;
            continue;
        }
        SignedWide above = 0, below = 0;
        if (n > m) b[m] = 0;
        if (f.steps & 1) { /* then the roles are exchanged; the cofactors have half the bits of a limb */
            int64_t swap = f.a;
            f.a = -f.b;
            f.b = -swap;
            swap = f.c;
            f.c = -f.d;
            f.d = -swap;
        }
        for (size_t i = 0; i < n; i++) {
            above += times(a[i], f.a) - times(b[i], f.b);
            below += times(b[i], f.d) - times(a[i], f.c);
            a[i] = (Limb)above;
            b[i] = (Limb)below;
            above >>= 64;
            below >>= 64;
        }
        size_t limbs = n;
        n = natural_trim(a, limbs);
        m = natural_trim(b, limbs);
    }
    if (m) {
        Limb rest = natural_divide_limb(scratch, a, n, b[0]);
        result[0] = natural_gcd_limb(b[0], rest);
        return 1;
    }
    if (a != result) memmove(result, a, n * sizeof(Limb));
    return n;
}
