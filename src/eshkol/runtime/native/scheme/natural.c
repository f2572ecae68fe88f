/* Arithmetic on natural numbers as arrays of limbs: sums, differences, shifts and products. Nothing here allocates.
 * Products: row by row for small ones, Karatsuba's for large ones.
 */
#include "bignum.h"

enum { KARATSUBA = 18, KARATSUBA_SQUARE = 30 };

size_t natural_trim(const Limb *a, size_t n) {
    while (n && !a[n - 1]) n--;
    return n;
}

int natural_compare(const Limb *a, size_t n, const Limb *b, size_t m) {
    if (n != m) return n < m ? -1 : 1;
    while (n--)
        if (a[n] != b[n]) return a[n] < b[n] ? -1 : 1;
    return 0;
}

Limb natural_add_limb(Limb *r, const Limb *a, size_t n, Limb w) {
    size_t i = 0;
    for (; i < n && w; i++) {
        Limb s = a[i] + w;
        w = s < w;
        r[i] = s;
    }
    if (r != a) memmove(r + i, a + i, (n - i) * sizeof(Limb));
    return w;
}

Limb natural_subtract_limb(Limb *r, const Limb *a, size_t n, Limb w) {
    size_t i = 0;
    for (; i < n && w; i++) {
        Limb x = a[i];
        r[i] = x - w;
        w = x < w;
    }
    if (r != a) memmove(r + i, a + i, (n - i) * sizeof(Limb));
    return w;
}

Limb natural_add(Limb *r, const Limb *a, size_t n, const Limb *b, size_t m) {
    Limb carry = 0;
    for (size_t i = 0; i < m; i++) {
        Limb s = a[i] + carry;
        carry = s < carry;
        s += b[i];
        carry += s < b[i];
        r[i] = s;
    }
    return natural_add_limb(r + m, a + m, n - m, carry);
}

Limb natural_subtract(Limb *r, const Limb *a, size_t n, const Limb *b, size_t m) {
    Limb borrow = 0;
    for (size_t i = 0; i < m; i++) {
        Limb x = a[i], y = b[i], d = x - y, e = d - borrow;
        borrow = (x < y) | (d < borrow);
        r[i] = e;
    }
    return natural_subtract_limb(r + m, a + m, n - m, borrow);
}

#if defined(__aarch64__)
/* The compiler takes a product of 64 bits for this, which is slower. */
static inline Limb half_product(Limb a, Limb b) {
    Limb product;
    __asm__("umull %0, %w1, %w2" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

/* By a factor of half a limb, as in factorials: two products of halves are cheaper than one of limbs, whose upper half
 * is an instruction of its own. */
static Limb multiply_half(Limb *r, const Limb *a, size_t n, Limb w, Limb carry) {
    for (size_t i = 0; i < n; i++) {
        Limb low = half_product(a[i], w), high = half_product(a[i] >> 32, w), sum = low + (high << 32);
        high = (high >> 32) + (sum < low);
        r[i] = sum + carry;
        carry = high + (r[i] < sum);
    }
    return carry;
}
#endif

Limb natural_multiply_limb(Limb *r, const Limb *a, size_t n, Limb w, Limb carry) {
    size_t i = 0;
#if defined(__aarch64__)
    if (w <= UINT32_MAX) return multiply_half(r, a, n, w, carry);
#endif
    for (; i + 4 <= n; i += 4) { /* four products in flight */
        Wide t0 = (Wide)a[i] * w, t1 = (Wide)a[i + 1] * w, t2 = (Wide)a[i + 2] * w, t3 = (Wide)a[i + 3] * w;
        t0 += carry;
        t1 += (Limb)(t0 >> 64);
        t2 += (Limb)(t1 >> 64);
        t3 += (Limb)(t2 >> 64);
        r[i] = (Limb)t0;
        r[i + 1] = (Limb)t1;
        r[i + 2] = (Limb)t2;
        r[i + 3] = (Limb)t3;
        carry = (Limb)(t3 >> 64);
    }
    for (; i < n; i++) {
        Wide t = (Wide)a[i] * w + carry;
        r[i] = (Limb)t;
        carry = (Limb)(t >> 64);
    }
    return carry;
}

Limb natural_add_multiple(Limb *r, const Limb *a, size_t n, Limb w) {
    Limb carry = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) { /* four products in flight */
        Wide t0 = (Wide)a[i] * w, t1 = (Wide)a[i + 1] * w, t2 = (Wide)a[i + 2] * w, t3 = (Wide)a[i + 3] * w;
        t0 += (Wide)r[i] + carry;
        t1 += (Wide)r[i + 1] + (Limb)(t0 >> 64);
        t2 += (Wide)r[i + 2] + (Limb)(t1 >> 64);
        t3 += (Wide)r[i + 3] + (Limb)(t2 >> 64);
        r[i] = (Limb)t0;
        r[i + 1] = (Limb)t1;
        r[i + 2] = (Limb)t2;
        r[i + 3] = (Limb)t3;
        carry = (Limb)(t3 >> 64);
    }
    for (; i < n; i++) {
        Wide t = (Wide)a[i] * w + r[i] + carry;
        r[i] = (Limb)t;
        carry = (Limb)(t >> 64);
    }
    return carry;
}

Limb natural_subtract_multiple(Limb *r, const Limb *a, size_t n, Limb w) {
    Limb carry = 0;
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        Wide t0 = (Wide)a[i] * w, t1 = (Wide)a[i + 1] * w;
        t0 += carry;
        Limb low = (Limb)t0, x = r[i], y = r[i + 1];
        r[i] = x - low;
        t1 += (Wide)(Limb)(t0 >> 64) + (x < low);
        low = (Limb)t1;
        r[i + 1] = y - low;
        carry = (Limb)(t1 >> 64) + (y < low);
    }
    if (i < n) {
        Wide t = (Wide)a[i] * w + carry;
        Limb low = (Limb)t, x = r[i];
        r[i] = x - low;
        carry = (Limb)(t >> 64) + (x < low);
    }
    return carry;
}

Limb natural_shift_left(Limb *r, const Limb *a, size_t n, unsigned bits) {
    if (!bits) {
        memmove(r, a, n * sizeof(Limb));
        return 0;
    }
    Limb out = n ? a[n - 1] >> (64 - bits) : 0;
    for (size_t i = n; i-- > 1;) r[i] = a[i] << bits | a[i - 1] >> (64 - bits);
    if (n) r[0] = a[0] << bits;
    return out;
}

Limb natural_shift_right(Limb *r, const Limb *a, size_t n, unsigned bits) {
    if (!bits) {
        memmove(r, a, n * sizeof(Limb));
        return 0;
    }
    Limb out = n ? a[0] << (64 - bits) : 0;
    for (size_t i = 0; i + 1 < n; i++) r[i] = a[i] >> bits | a[i + 1] << (64 - bits);
    if (n) r[n - 1] = a[n - 1] >> bits;
    return out;
}

static void multiply_rows(Limb *r, const Limb *a, size_t n, const Limb *b, size_t m) {
    r[n] = natural_multiply_limb(r, a, n, b[0], 0);
    for (size_t j = 1; j < m; j++) r[n + j] = natural_add_multiple(r + j, a, n, b[j]);
}

static void square_rows(Limb *r, const Limb *a, size_t n) {
    /* the products of different limbs, once; doubled; and the squares */
    r[0] = 0;
    if (n > 1) {
        r[n] = natural_multiply_limb(r + 1, a + 1, n - 1, a[0], 0);
        for (size_t i = 1; i + 1 < n; i++) r[n + i] = natural_add_multiple(r + 2 * i + 1, a + i + 1, n - i - 1, a[i]);
    }
    r[2 * n - 1] = 0;
    Limb top = 0, carry = 0;
    for (size_t i = 0; i < n; i++) {
        Limb low = r[2 * i], high = r[2 * i + 1];
        Wide s = (Wide)a[i] * a[i] + carry;
        Wide t = (Wide)(low << 1 | top) + (Limb)s;
        r[2 * i] = (Limb)t;
        t = (Wide)(high << 1 | low >> 63) + (Limb)(s >> 64) + (Limb)(t >> 64);
        r[2 * i + 1] = (Limb)t;
        carry = (Limb)(t >> 64);
        top = high >> 63;
    }
}

/* |a - b| of h and k <= h limbs into r; whether it was negative. */
static bool distance(Limb *r, const Limb *a, size_t h, const Limb *b, size_t k) {
    if (natural_compare(a, natural_trim(a, h), b, natural_trim(b, k)) >= 0) {
        natural_subtract(r, a, h, b, k);
        return false;
    }
    natural_subtract(r, b, k, a, k); /* what a has above is zero here */
    memset(r + k, 0, (h - k) * sizeof(Limb));
    return true;
}

/* r = a b of n limbs each. Scratch: balanced_scratch(n). */
static void multiply_balanced(Context *context, Limb *r, const Limb *a, const Limb *b, size_t n, Limb *scratch) {
    bool square = a == b;
    if (n < (square ? KARATSUBA_SQUARE : KARATSUBA)) {
        if (square) square_rows(r, a, n);
        else multiply_rows(r, a, n, b, n);
        return;
    }
    if (n >= POLLED) natural_look_up(context);
    size_t h = (n + 1) / 2, k = n - h;
    Limb *middle = scratch, *rest = scratch + 2 * h + 1;
    bool negative = distance(r, a, h, a + h, k);
    if (square) {
        negative = false;
        multiply_balanced(context, middle, r, r, h, rest);
    } else {
        negative ^= distance(r + h, b, h, b + h, k);
        multiply_balanced(context, middle, r, r + h, h, rest);
    }
    multiply_balanced(context, r, a, b, h, rest);
    multiply_balanced(context, r + 2 * h, a + h, square ? a + h : b + h, k, rest);
    /* a1 b0 + a0 b1 = a0 b0 + a1 b1 - (a0 - a1)(b0 - b1) */
    Limb *sum = rest;
    sum[2 * h] = natural_add(sum, r, 2 * h, r + 2 * h, 2 * k);
    if (negative) sum[2 * h] += natural_add(sum, sum, 2 * h, middle, 2 * h);
    else sum[2 * h] -= natural_subtract(sum, sum, 2 * h, middle, 2 * h);
    size_t room = 2 * n - h, used = natural_trim(sum, 2 * h + 1);
    natural_add(r + h, r + h, room, sum, used);
}

static size_t balanced_scratch(size_t n) {
    size_t total = 0;
    while (n >= KARATSUBA) {
        n = (n + 1) / 2;
        total += 2 * n + 1;
    }
    return total + 2 * n + 1 + 4 * KARATSUBA_SQUARE;
}

size_t natural_multiply_scratch(size_t n, size_t m) {
    if (m < KARATSUBA) return 0;
    return 2 * m + balanced_scratch(m) + (n % m >= KARATSUBA ? natural_multiply_scratch(m, n % m) : 0);
}

void natural_multiply(Context *context, Limb *r, const Limb *a, size_t n, const Limb *b, size_t m, Limb *scratch) {
    if (n == m && (a == b || m >= KARATSUBA)) {
        multiply_balanced(context, r, a, b, n, scratch);
        return;
    }
    if (m < KARATSUBA) {
        multiply_rows(r, a, n, b, m);
        return;
    }
    /* pieces of a, each as long as b */
    Limb *piece = scratch, *rest = scratch + 2 * m;
    multiply_balanced(context, r, a, b, m, rest);
    size_t done = m;
    for (; done + m <= n; done += m) {
        multiply_balanced(context, piece, a + done, b, m, rest);
        Limb carry = natural_add(r + done, piece, 2 * m, r + done, m);
        (void)carry; /* the product fits */
    }
    size_t left = n - done;
    if (left) {
        natural_multiply(context, piece, b, m, a + done, left, rest);
        natural_add(r + done, piece, m + left, r + done, m);
    }
}
