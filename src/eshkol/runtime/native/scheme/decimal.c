/* Doubles and decimal digits. The shortest digits that give a double back when read are found with Giulietti's method
 * (Schubfach): three products with a power of ten of 128 bits. The double nearest to some digits is found from the same
 * powers whenever the bits they have decide it; where they do not, the caller computes with exact integers.
 */
#include "numbers.h"

#include <math.h>

#include "decimal_powers.h"

/* floor(log2(10^k)), floor(log10(2^e)) and floor(log10(3/4 2^e)) for the exponents that occur. */
static int log2_of_power_10(int k) { return (k * 1741647) >> 19; }
static int log10_of_power_2(int e) { return (e * 1262611) >> 22; }
static int log10_of_three_quarters(int e) { return (e * 1262611 - 524031) >> 22; }

/* The top of the product of a power of ten and c, its last bit set when anything below is not zero. */
static uint64_t round_to_odd(const uint64_t power[2], uint64_t c) {
    Wide low = (Wide)power[1] * c, high = (Wide)power[0] * c + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static Decimal without_zeros(uint64_t digits, int exponent) {
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    return (Decimal){digits, exponent};
}

Decimal decimal_shortest(double x) {
    uint64_t bits, c;
    memcpy(&bits, &x, 8);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int biased = (int)(bits >> 52 & 2047), q = 1 - 1075;
    c = fraction;
    if (biased) {
        c |= (uint64_t)1 << 52;
        q = biased - 1075;
        if (q <= 0 && q > -53 && !(c & (((uint64_t)1 << -q) - 1))) return without_zeros(c >> -q, 0);
    }
    bool even = !(c & 1), closer_below = !fraction && biased > 1;
    uint64_t low = 4 * c - 2 + closer_below, middle = 4 * c, high = 4 * c + 2;
    int k = closer_below ? log10_of_three_quarters(q) : log10_of_power_2(q);
    int h = q + log2_of_power_10(-k) + 1;
    const uint64_t *power = POWERS_OF_TEN[-k - POWER_LOWEST];
    uint64_t lower = round_to_odd(power, low << h) + !even, upper = round_to_odd(power, high << h) - !even;
    uint64_t v = round_to_odd(power, middle << h);
    uint64_t s = v / 4;
    if (s >= 10) { /* is there a number with one digit less? */
        uint64_t t = s / 10;
        bool below = lower <= 40 * t, above = 40 * t + 40 <= upper;
        if (below != above) return without_zeros(t + above, k + 1);
    }
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above) return without_zeros(s + above, k);
    uint64_t half = 4 * s + 2;
    return without_zeros(s + (v > half || (v == half && (s & 1))), k);
}

/* The double that 2^exponent times a number of 128 bits rounds to. */
static double rounded(Wide w, int64_t exponent) {
    uint64_t high = (uint64_t)(w >> 64), low = (uint64_t)w;
    int zeros = __builtin_clzll(high);
    if (zeros) {
        high = high << zeros | low >> (64 - zeros);
        low <<= zeros;
    }
    return double_from_parts(high, low != 0, exponent + 64 - zeros);
}

bool decimal_double(uint64_t digits, int64_t exponent, double *result) {
    static const double small[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!digits) {
        *result = 0.0;
        return true;
    }
    if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) { /* both are doubles: one rounding */
        *result = exponent < 0 ? (double)digits / small[-exponent] : (double)digits * small[exponent];
        return true;
    }
    if (exponent > 310) {
        *result = INFINITY;
        return true;
    }
    if (exponent < -345) {
        *result = 0.0;
        return true;
    }
    if (exponent < POWER_LOWEST || exponent > POWER_HIGHEST) return false;
    /* With P the product of 192 bits and H all of it but the lowest limb, the number is in (P - digits, P] 2^scale, and
     * so between H - 1 and H + 1. No number that rounding turns at is odd: it is decided when what is just below H - 1
     * and what is just above H round to the same. */
    const uint64_t *power = POWERS_OF_TEN[exponent - POWER_LOWEST];
    Wide low = (Wide)power[1] * digits, high = (Wide)power[0] * digits + (uint64_t)(low >> 64);
    int64_t scale = log2_of_power_10((int)exponent) - 127 + 64;
    if (!(uint64_t)((high - 2) >> 64)) return false;
    double a = rounded(high | 1, scale), b = rounded((high - 2) | 1, scale);
    *result = a;
    return a == b;
}
