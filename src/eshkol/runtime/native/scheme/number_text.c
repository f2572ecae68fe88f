/* Numbers from text and numbers as text: all of the syntax of R7RS 7.1.1, and radices up to 36 besides. A text that is
 * no number gives #f. The work is bounded by the length of the text: exponents that lead beyond every double are not
 * computed, and exact numbers with an absurd exponent are refused.
 */
#include "numbers.h"
#include "tensor_numbers.h"

#include <math.h>
#include <stdlib.h>

enum { SIGNIFICANT = 800 /* digits: no double, nor the middle of two, has more */ };
enum { EXPONENT_LIMIT = 1 << 24, SHORT_TEXT = 256 };

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct {
    Context *context;
    const char *at, *end;
    int radix;
    char exactness; /* 'e', 'i', or 0 where the text does not say */
} Scan;

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool accept_word(Scan *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(s->at[i]) != word[i]) return false;
    s->at += n;
    return true;
}

/* Whether digits stand here; they are passed. */
static bool accept_digits(Scan *s) {
    const char *start = s->at;
    while (s->at < s->end && digit_value((unsigned char)*s->at) < s->radix) s->at++;
    return s->at > start;
}

/* A decimal number in its parts: digits with a point somewhere, and a power of the radix. */
typedef struct {
    const char *whole, *fraction;
    size_t whole_count, fraction_count;
    int64_t exponent;
} Decimals;

/* The digits in one piece, without zeros in front, at most SIGNIFICANT of them and a digit for those left out. */
static size_t join(const Decimals *d, char *room, int64_t *exponent) {
    size_t count = 0, left_out = 0;
    bool rest = false;
    for (size_t i = 0; i < d->whole_count + d->fraction_count; i++) {
        char c = i < d->whole_count ? d->whole[i] : d->fraction[i - d->whole_count];
        if (!count && c == '0') continue;
        if (count < SIGNIFICANT) {
            room[count++] = c;
        } else {
            left_out++;
            rest |= c != '0';
        }
    }
    *exponent = d->exponent - (int64_t)d->fraction_count + (int64_t)left_out;
    if (rest) {
        room[count++] = '1';
        --*exponent;
    }
    return count;
}

static Value scaled_integer(Context *context, Value digits, int radix, int64_t exponent) {
    Value power = integer_power(context, esk_fixnum(radix), fixnum_magnitude(exponent), NULL);
    return exponent < 0 ? rational_make(context, digits, power) : integer_multiply(context, digits, power);
}

/* The double nearest to digits of radix 10. */
static double decimals_double(Context *context, const Decimals *d) {
    char room[SIGNIFICANT + 1];
    int64_t exponent;
    size_t count = join(d, room, &exponent);
    if (!count) return 0.0;
    int64_t order = exponent + (int64_t)count; /* the number is less than 10^order, and not less than a tenth of that */
    if (order > 310) return INFINITY;
    if (order < -330) return 0.0;
    uint64_t leading = 0;
    size_t taken = count < 19 ? count : 19;
    for (size_t i = 0; i < taken; i++) leading = leading * 10 + (uint64_t)(room[i] - '0');
    double x, y;
    int64_t shifted = exponent + (int64_t)(count - taken);
    if (decimal_double(leading, shifted, &x)) {
        if (taken == count) return x;
        if (decimal_double(leading + 1, shifted, &y) && x == y) return x;
    }
    return real_double(context, scaled_integer(context, integer_parse(context, room, count, 10), 10, exponent));
}

static Value decimals_exact(Context *context, const Decimals *d, int radix) {
    Value whole = d->whole_count ? integer_parse(context, d->whole, d->whole_count, radix) : esk_fixnum(0);
    if (d->fraction_count) {
        Value fraction = integer_parse(context, d->fraction, d->fraction_count, radix);
        Value power = integer_power(context, esk_fixnum(radix), d->fraction_count, NULL);
        whole = integer_add(context, integer_multiply(context, whole, power), fraction);
    }
    if (is_exact_zero(whole)) return whole;
    int64_t exponent = d->exponent - (int64_t)d->fraction_count;
    if (exponent > EXPONENT_LIMIT || exponent < -EXPONENT_LIMIT - (int64_t)d->fraction_count)
        esk_fail(context, ERROR_RANGE, "string->number", "the exponent of an exact number is too large", 1,
                 esk_fixnum(exponent));
    return scaled_integer(context, whole, radix, exponent);
}

/* The exponent after a mark; kept small enough that sums with lengths do not overflow. False: there is none. */
static bool accept_exponent(Scan *s, int64_t *exponent) {
    const char *start = s->at;
    *exponent = 0;
    if (s->at == s->end || lower(*s->at) != 'e') return true;
    s->at++;
    bool negative = s->at < s->end && *s->at == '-';
    if (negative || (s->at < s->end && *s->at == '+')) s->at++;
    const char *digits = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (*exponent < (int64_t)1 << 50) *exponent = *exponent * 10 + (*s->at - '0');
    if (s->at == digits) {
        s->at = start;
        return false;
    }
    if (negative) *exponent = -*exponent;
    return true;
}

/* An unsigned real: n, n/d, or decimals. False: there is none here. */
static bool accept_unsigned(Scan *s, bool negative, Value *result) {
    Decimals d = {.whole = s->at};
    accept_digits(s);
    d.whole_count = (size_t)(s->at - d.whole);
    Context *context = s->context;
    bool decimal = false;
    if (d.whole_count && s->at < s->end && *s->at == '/') {
        const char *below = ++s->at;
        if (!accept_digits(s)) return false;
        Value n = integer_parse(context, d.whole, d.whole_count, s->radix);
        Value divisor = integer_parse(context, below, (size_t)(s->at - below), s->radix);
        if (is_exact_zero(divisor)) return false;
        if (negative) n = integer_negate(context, n);
        if (s->exactness == 'i')
            *result = esk_flonum(integer_sign(n) ? integer_ratio(context, n, divisor) : negative ? -0.0 : 0.0);
        else *result = rational_make(context, n, divisor);
        return true;
    }
    if (s->at < s->end && *s->at == '.') {
        decimal = true;
        d.fraction = ++s->at;
        accept_digits(s);
        d.fraction_count = (size_t)(s->at - d.fraction);
    }
    if (!d.whole_count && !d.fraction_count) return false;
    if (s->radix == 10) {
        const char *mark = s->at;
        if (!accept_exponent(s, &d.exponent)) return false;
        decimal |= s->at > mark;
    }
    if (!decimal && s->exactness != 'i') {
        Value n = integer_parse(context, d.whole, d.whole_count, s->radix);
        *result = negative ? integer_negate(context, n) : n;
    } else if (s->exactness == 'e') {
        Value v = decimals_exact(context, &d, s->radix);
        *result = negative ? number_negate(context, v) : v;
    } else {
        double x = s->radix == 10 ? decimals_double(context, &d)
                                  : real_double(context, decimals_exact(context, &d, s->radix));
        *result = esk_flonum(negative ? -x : x);
    }
    return true;
}

static bool accept_real(Scan *s, Value *result, bool *has_sign) {
    bool negative = s->at < s->end && *s->at == '-';
    *has_sign = negative || (s->at < s->end && *s->at == '+');
    if (*has_sign) {
        s->at++;
        bool infinite = accept_word(s, "inf.0");
        if (infinite || accept_word(s, "nan.0")) {
            *result = esk_flonum(!infinite ? NAN : negative ? -INFINITY : INFINITY);
            return s->exactness != 'e';
        }
    }
    return accept_unsigned(s, negative, result);
}

/* "+i" or "-i" at the end of the text. */
static bool accept_unit(Scan *s, Value *result) {
    if (s->end - s->at != 2 || (s->at[0] != '+' && s->at[0] != '-') || lower(s->at[1]) != 'i' || s->radix > 18)
        return false;
    int64_t one = s->at[0] == '-' ? -1 : 1;
    *result = s->exactness == 'i' ? esk_flonum((double)one) : esk_fixnum(one);
    s->at += 2;
    return true;
}

static bool accept_prefix(Scan *s) {
    bool radix = false;
    while (s->end - s->at >= 2 && *s->at == '#') {
        char mark = lower(s->at[1]);
        s->at += 2;
        if (mark == 'e' || mark == 'i') {
            if (s->exactness) return false;
            s->exactness = mark;
            continue;
        }
        if (radix) return false;
        radix = true;
        switch (mark) {
        case 'b': s->radix = 2; break;
        case 'o': s->radix = 8; break;
        case 'd': s->radix = 10; break;
        case 'x': s->radix = 16; break;
        default: return false;
        }
    }
    return true;
}

static Value inexact_zero_or_zero(const Scan *s) { return s->exactness == 'i' ? esk_flonum(0.0) : esk_fixnum(0); }

Value esk_parse_number(Context *context, const char *text, int64_t count, int radix) {
    Scan s = {context, text, text + count, radix, 0};
    Value x, y;
    bool has_sign;
    if (!accept_prefix(&s)) return ESK_FALSE;
    if (accept_unit(&s, &y)) return complex_make(context, inexact_zero_or_zero(&s), y);
    if (!accept_real(&s, &x, &has_sign)) return ESK_FALSE;
    if (s.at == s.end) return x;
    char next = lower(*s.at);
    if (next == 'i' && has_sign && s.at + 1 == s.end) return complex_make(context, inexact_zero_or_zero(&s), x);
    if (next == '@') {
        s.at++;
        if (!accept_real(&s, &y, &has_sign) || s.at != s.end) return ESK_FALSE;
        Value z = complex_from_polar(context, x, y);
        if (s.exactness != 'e') return z;
        if (!isfinite(real_double(context, real_part_of(z))) || !isfinite(real_double(context, imaginary_part_of(z))))
            return ESK_FALSE;
        return number_exact(context, z, "string->number");
    }
    if (next != '+' && next != '-') return ESK_FALSE;
    if (accept_unit(&s, &y)) return complex_make(context, x, y);
    if (!accept_real(&s, &y, &has_sign) || s.at + 1 != s.end || lower(*s.at) != 'i') return ESK_FALSE;
    return complex_make(context, x, y);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static const char DIGITS[] = "0123456789abcdefghijklmnopqrstuvwxyz";
enum { FLONUM_ROOM = 1200 /* bytes that a flonum needs at most, in radix 2 */, POSITIONAL = 21, POSITIONAL_BELOW = 7 };

/* Digits and the place of the point, counted from before the first digit. */
static size_t write_positional(const char *digits, int count, int point, char *out) {
    char *start = out;
    if (point <= 0) {
        *out++ = '0';
        *out++ = '.';
        memset(out, '0', (size_t)-point);
        out += -point;
        memcpy(out, digits, (size_t)count);
        return (size_t)(out + count - start);
    }
    for (int i = 0; i < count || i <= point; i++) {
        if (i == point) *out++ = '.';
        *out++ = i < count ? digits[i] : '0';
    }
    return (size_t)(out - start);
}

static size_t write_decimal(double x, char *out) {
    if (x == 0) return write_positional("0", 1, 1, out);
    Decimal d = decimal_shortest(x);
    char digits[24];
    int count = 0, point;
    for (uint64_t rest = d.digits; rest; rest /= 10) count++;
    for (int i = count; i--; d.digits /= 10) digits[i] = (char)('0' + d.digits % 10);
    point = count + d.exponent;
    if (point <= POSITIONAL && point > 1 - POSITIONAL_BELOW) return write_positional(digits, count, point, out);
    char *start = out;
    *out++ = digits[0];
    if (count > 1) {
        *out++ = '.';
        memcpy(out, digits + 1, (size_t)count - 1);
        out += count - 1;
    }
    *out++ = 'e';
    int exponent = point - 1;
    if (exponent < 0) *out++ = '-';
    exponent = abs(exponent);
    if (exponent >= 100) *out++ = (char)('0' + exponent / 100);
    if (exponent >= 10) *out++ = (char)('0' + exponent / 10 % 10);
    *out++ = (char)('0' + exponent % 10);
    return (size_t)(out - start);
}

/* The shortest digits in any radix, after Burger and Dybvig, with exact integers: x = r / s, and what is within
 * more / s above and less / s below reads as x. */
static size_t write_in_radix(Context *context, double x, int radix, char *out) {
    if (x == 0) return write_positional("0", 1, 1, out);
    int exponent;
    double fraction = frexp(x, &exponent);
    if (exponent < -1021) { /* subnormal: fewer bits */
        fraction = ldexp(x, 1074 - 53);
        exponent = -1021;
    }
    Value mantissa = esk_fixnum((int64_t)ldexp(fraction, 53)), base = esk_fixnum(radix);
    exponent -= 53;
    bool even = !integer_odd(mantissa), narrow = esk_integer(mantissa) == (int64_t)1 << 52 && exponent > -1074;
    int up = narrow ? 2 : 1;
    Value one = esk_fixnum(1), power = exponent > 0 ? integer_shift(context, one, exponent) : one;
    Value r = integer_shift(context, integer_multiply(context, mantissa, power), up);
    Value s = integer_shift(context, one, (exponent < 0 ? -exponent : 0) + up);
    Value less = power, more = integer_shift(context, power, up - 1);
    int point = (int)ceil(log2(x) / log2((double)radix) - 1e-10);
    if (point >= 0) {
        s = integer_multiply(context, s, integer_power(context, base, (uint64_t)point, NULL));
    } else {
        Value scale = integer_power(context, base, (uint64_t)-point, NULL);
        r = integer_multiply(context, r, scale);
        less = integer_multiply(context, less, scale);
        more = integer_multiply(context, more, scale);
    }
    int order = integer_compare(integer_add(context, r, more), s);
    if (even ? order >= 0 : order > 0) {
        point++;
        s = integer_multiply(context, s, base);
    }
    char digits[64];
    int count = 0;
    for (bool low = false, high = false; !low && !high;) {
        Value digit;
        integer_divide(context, integer_multiply(context, r, base), s, &digit, &r);
        less = integer_multiply(context, less, base);
        more = integer_multiply(context, more, base);
        int below = integer_compare(r, less), above = integer_compare(integer_add(context, r, more), s);
        low = even ? below <= 0 : below < 0;
        high = even ? above >= 0 : above > 0;
        bool round_up = high && (!low || integer_compare(integer_shift(context, r, 1), s) >= 0);
        digits[count++] = DIGITS[esk_integer(digit) + round_up];
    }
    return write_positional(digits, count, point, out);
}

static size_t real_room(Value v, int radix) {
    if (v.tag == TAG_FLONUM) return FLONUM_ROOM;
    return integer_digits_room(numerator_of(v), radix) + integer_digits_room(denominator_of(v), radix) + 2;
}

static size_t write_real(Context *context, Value v, int radix, char *out) {
    if (v.tag != TAG_FLONUM) {
        size_t count = integer_digits(context, numerator_of(v), radix, out);
        if (v.tag != TAG_RATIONAL) return count;
        out[count] = '/';
        return count + 1 + integer_digits(context, couple_second(v), radix, out + count + 1);
    }
    double x = esk_double(v);
    if (!isfinite(x)) {
        memcpy(out, isnan(x) ? "+nan.0" : x > 0 ? "+inf.0" : "-inf.0", 6);
        return 6;
    }
    size_t sign = signbit(x) != 0;
    *out = '-';
    out += sign;
    return sign + (radix == 10 ? write_decimal(fabs(x), out) : write_in_radix(context, fabs(x), radix, out));
}

static size_t write_number(Context *context, Value v, int radix, char *out) {
    if (v.tag != TAG_COMPLEX) return write_real(context, v, radix, out);
    Value x = couple_first(v), y = couple_second(v);
    char *start = out;
    if (!is_exact_zero(x)) out += write_real(context, x, radix, out);
    if (y.tag == TAG_FLONUM ? isfinite(esk_double(y)) && !signbit(esk_double(y)) : real_sign(y) > 0) *out++ = '+';
    if (fixnum_is(y, -1)) *out++ = '-';
    else if (!fixnum_is(y, 1)) out += write_real(context, y, radix, out);
    *out++ = 'i';
    return (size_t)(out - start);
}

Value esk_number_text(Context *context, Value v, int radix) {
    size_t room = real_room(real_part_of(v), radix) + real_room(imaginary_part_of(v), radix) + 4;
    char small[2 * FLONUM_ROOM + 16], *out = small;
    if (room > sizeof small) out = (char *)integer_scratch(context, room / sizeof(Limb) + 1);
    size_t count = write_number(context, v, radix, out);
    return esk_string_utf8(context, out, (int64_t)count);
}

/* ---- procedures ------------------------------------------------------------------------------------------------- */

static int radix_argument(Context *context, const char *who, const Value *args, int64_t count) {
    if (count < 2) return 10;
    if (!esk_is(args[1], TAG_FIXNUM) || esk_integer(args[1]) < 2 || esk_integer(args[1]) > 36)
        esk_wrong_type(context, who, 2, args[1], "a radix, an exact integer from 2 to 36");
    return (int)esk_integer(args[1]);
}

static Value number_to_string(Context *context, const Value *args, int64_t count) {
    Value v = args[0];
    if (v.tag == TAG_TENSOR) {
        tensor_number(context, "number->string", 1, v); /* that it is one; its digits are those of its own dtype */
        v = tensor_shown(context, v, false);
    }
    need_number(context, "number->string", 1, v);
    return esk_number_text(context, v, radix_argument(context, "number->string", args, count));
}

static Value string_to_number(Context *context, const Value *args, int64_t count) {
    if (!esk_is(args[0], TAG_STRING)) esk_wrong_type(context, "string->number", 1, args[0], "a string");
    int radix = radix_argument(context, "string->number", args, count);
    const String *string = esk_pointer(args[0]);
    char small[SHORT_TEXT], *text = small;
    if (string->length > SHORT_TEXT) text = (char *)integer_scratch(context, (size_t)string->length / sizeof(Limb) + 1);
    for (int64_t i = 0; i < string->length; i++) {
        if (string->chars[i] > 126) return ESK_FALSE;
        text[i] = (char)string->chars[i];
    }
    return esk_parse_number(context, text, string->length, radix);
}

const Primitive esk_number_text_primitives[] = {
    ESK_PRIMITIVE_N("number->string", "(number->string z [radix])", 1, 2, number_to_string,
                    "The text of z; read again it gives z. The radix is 10 unless another from 2 to 36 is given."),
    ESK_PRIMITIVE_N("string->number", "(string->number string [radix])", 1, 2, string_to_number,
                    "The number that the string is the text of, or #f."),
    {0}};
