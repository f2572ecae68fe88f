/* Digits of exact integers in any radix from 2 to 36, both ways. Radices that are powers of two take time linear in the
 * number of digits; the others split at powers of the radix, so that they cost little more than products and quotients
 * of that size.
 */
#include <math.h>

#include "bignum.h"

enum { PIECE_LIMBS = 16 /* a number of so many limbs is not split further */, LEVELS = 40 };

/* The largest power of a radix that is a limb, and the powers that numbers are split at. */
typedef struct {
    int radix;
    size_t digits; /* of one limb */
    Limb power;
    int known;
    Value powers[LEVELS]; /* radix^(digits PIECE_LIMBS 2^i) */
} Radix;

int digit_value(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
    return 99;
}

static Radix radix_facts(int radix) {
    Radix f = {.radix = radix, .digits = 1, .power = (Limb)radix, .known = 0};
    while (f.power <= ~(Limb)0 / (Limb)radix) {
        f.power *= (Limb)radix;
        f.digits++;
    }
    return f;
}

static size_t level_digits(const Radix *f, int level) { return f->digits * PIECE_LIMBS << level; }

static Value level_power(Context *context, Radix *f, int level) {
    for (; f->known <= level; f->known++)
        f->powers[f->known] = f->known ? integer_multiply(context, f->powers[f->known - 1], f->powers[f->known - 1])
                                       : integer_power(context, esk_fixnum(f->radix), level_digits(f, 0), NULL);
    return f->powers[level];
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static Value parse_bits(Context *context, const char *digits, size_t count, unsigned width) {
    size_t limbs = count / 64 * width + count % 64 * width / 64 + 1;
    Bignum *b = integer_room(context, limbs);
    memset(b->limbs, 0, limbs * sizeof(Limb));
    for (size_t i = 0; i < count; i++) {
        Limb digit = (Limb)digit_value((unsigned char)digits[count - 1 - i]);
        size_t place = i / 64 * width + i % 64 * width / 64;
        unsigned bit = (unsigned)(i % 64 * width % 64);
        b->limbs[place] |= digit << bit;
        if (bit + width > 64 && digit >> (64 - bit)) b->limbs[place + 1] |= digit >> (64 - bit);
    }
    return integer_finish(b, limbs, false);
}

static Limb parse_limb(const char *digits, size_t count, int radix) {
    Limb w = 0;
    for (size_t i = 0; i < count; i++) w = w * (Limb)radix + (Limb)digit_value((unsigned char)digits[i]);
    return w;
}

static Value parse_split(Context *context, Radix *f, const char *digits, size_t count) {
    if (count <= f->digits * PIECE_LIMBS) {
        Limb limbs[PIECE_LIMBS + 1];
        size_t n = 0, first = count % f->digits ? count % f->digits : f->digits;
        for (size_t i = 0; i < count;) {
            size_t step = i ? f->digits : first;
            Limb carry = natural_multiply_limb(limbs, limbs, n, f->power, parse_limb(digits + i, step, f->radix));
            if (carry) limbs[n++] = carry;
            i += step;
        }
        return integer_from_limbs(context, limbs, n, false);
    }
    int level = 0;
    while (level_digits(f, level + 1) < count) level++;
    size_t low = level_digits(f, level);
    Value high = parse_split(context, f, digits, count - low);
    Value rest = parse_split(context, f, digits + count - low, low);
    return integer_add(context, integer_multiply(context, high, level_power(context, f, level)), rest);
}

Value integer_parse(Context *context, const char *digits, size_t count, int radix) {
    while (count > 1 && *digits == '0') {
        digits++;
        count--;
    }
    Radix f = radix_facts(radix);
    if (count < f.digits) return esk_fixnum((int64_t)parse_limb(digits, count, radix));
    if (!(radix & (radix - 1))) return parse_bits(context, digits, count, (unsigned)__builtin_ctz((unsigned)radix));
    return parse_split(context, &f, digits, count);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static const char DIGITS[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* The digits of w, the last of them before `end`; where they begin. */
static char *write_limb(char *end, Limb w, unsigned radix) {
    if (radix == 10) /* a division by a constant is a product */
        for (; w; w /= 10) *--end = (char)('0' + w % 10);
    else
        for (; w; w /= radix) *--end = DIGITS[w % radix];
    return end;
}

/* So many limbs, which are used up, at `out`, with zeros in front up to `width` digits. */
static size_t write_piece(const Radix *f, Limb *limbs, size_t n, char *out, size_t width) {
    char room[PIECE_LIMBS * 2 * 64 + 64], *end = room + sizeof room, *start = end;
    n = natural_trim(limbs, n);
    while (n) {
        Limb rest = natural_divide_limb(limbs, limbs, n, f->power);
        n = natural_trim(limbs, n);
        char *next = write_limb(start, rest, (unsigned)f->radix);
        if (n)
            while (start - next < (ptrdiff_t)f->digits) *--next = '0';
        start = next;
    }
    size_t count = (size_t)(end - start), zeros = count < width ? width - count : 0;
    memset(out, '0', zeros);
    memcpy(out + zeros, start, count);
    return zeros + count;
}

static size_t write_split(Context *context, Radix *f, int level, Value v, char *out, bool padded) {
    if (level < 0) {
        Limb s, limbs[2 * PIECE_LIMBS];
        View x = view(v, &s);
        memcpy(limbs, x.limbs, x.count * sizeof(Limb));
        return write_piece(f, limbs, x.count, out, padded ? level_digits(f, 0) : 0);
    }
    Value high, low;
    integer_divide(context, v, level_power(context, f, level), &high, &low);
    size_t count = 0;
    bool leading = padded || !fixnum_is(high, 0);
    if (leading) count = write_split(context, f, level - 1, high, out, padded);
    return count + write_split(context, f, level - 1, low, out + count, leading);
}

static size_t write_bits(View x, unsigned width, char *out) {
    uint64_t bits = x.count * 64 - (uint64_t)__builtin_clzll(x.limbs[x.count - 1]);
    size_t count = (bits + width - 1) / width;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * width;
        size_t place = at / 64;
        unsigned bit = at % 64;
        Limb w = x.limbs[place] >> bit;
        if (bit + width > 64 && place + 1 < x.count) w |= x.limbs[place + 1] << (64 - bit);
        out[count - 1 - i] = DIGITS[w & (((Limb)1 << width) - 1)];
    }
    return count;
}

size_t integer_digits_room(Value v, int radix) {
    uint64_t bits = integer_length(v);
    if (bits < 1000) return bits + 2;
    return (size_t)((double)bits / log2((double)radix) * (1 + 1e-12)) + 4;
}

size_t integer_digits(Context *context, Value v, int radix, char *room) {
    Limb s;
    View x = view(v, &s);
    char *out = room;
    if (x.negative) *out++ = '-';
    if (!x.count) {
        *out++ = '0';
    } else if (x.count == 1) {
        char small[64], *end = small + 64, *start = write_limb(end, x.limbs[0], (unsigned)radix);
        memcpy(out, start, (size_t)(end - start));
        out += end - start;
    } else if (!(radix & (radix - 1))) {
        out += write_bits(x, (unsigned)__builtin_ctz((unsigned)radix), out);
    } else {
        Radix f = radix_facts(radix);
        int level = -1;
        if (x.count > PIECE_LIMBS) {
            /* the last power is the first whose square is longer than the number */
            for (level = 0;; level++) {
                Value p = level_power(context, &f, level);
                if (2 * (integer_length(p) - 1) > integer_length(v)) break;
            }
        }
        out += write_split(context, &f, level, integer_magnitude(context, v), out, false);
    }
    return (size_t)(out - room);
}
