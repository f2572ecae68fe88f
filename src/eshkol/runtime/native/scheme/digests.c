/* Digests of bytes (SHA-256, SHA-1, MD5, CRC-32), base64 and hexadecimal, for (eshkol digests) and (eshkol encodings).
 *
 * A digest under way is a bytevector that holds a Digest; bytes are added piece by piece, so that files of any length
 * need no memory. It is copied out and in and checked each time, since a program may write into a bytevector. The
 * constants are those of FIPS 180-4 (fractions of roots of primes) and RFC 1321 (sines). */
#include "data.h"

enum { CRC32, MD5, SHA1, SHA256, KINDS };
enum { BLOCK = 64 };

typedef struct {
    uint32_t kind;
    uint32_t words[8]; /* the state; of CRC-32 the first only */
    uint32_t used;     /* so many bytes of block wait for the rest of it */
    uint64_t total;    /* bytes */
    uint8_t block[BLOCK];
} Digest;

static const uint8_t sizes[KINDS] = {4, 16, 20, 32};

static const uint32_t first_words[KINDS][8] = {
    {0xFFFFFFFF},
    {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476},
    {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0},
    {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F,
     0x9B05688C, 0x1F83D9AB, 0x5BE0CD19},
};

static const uint32_t md5_sines[BLOCK] = {
    0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
    0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
    0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
    0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
    0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
    0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
    0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
    0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
};

static const uint32_t sha256_roots[BLOCK] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

static inline uint32_t left(uint32_t x, int by) { return x << by | x >> (32 - by); }
static inline uint32_t right(uint32_t x, int by) { return x >> by | x << (32 - by); }

static inline uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline uint32_t little_endian(const uint8_t *at) {
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* ---- the four functions ----------------------------------------------------------------------------------------- */

static uint32_t crc32_more(uint32_t crc, const uint8_t *at, int64_t count) {
    static const uint32_t half[16] = { /* the remainders of four bits */
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    for (int64_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = half[crc & 15] ^ crc >> 4;
        crc = half[crc & 15] ^ crc >> 4;
    }
    return crc;
}

static void md5_block(uint32_t *words, const uint8_t *block) {
    static const uint8_t turns[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
    uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
    for (int i = 0; i < 64; i++) {
        uint32_t mixed;
        int which;
        switch (i >> 4) {
        case 0: mixed = (b & c) | (~b & d), which = i; break;
        case 1: mixed = (d & b) | (~d & c), which = (5 * i + 1) & 15; break;
        case 2: mixed = b ^ c ^ d, which = (3 * i + 5) & 15; break;
        default: mixed = c ^ (b | ~d), which = (7 * i) & 15; break;
        }
        uint32_t sum = a + mixed + md5_sines[i] + little_endian(block + 4 * which);
        a = d, d = c, c = b;
        b += left(sum, turns[(i >> 4) * 4 + (i & 3)]);
    }
    words[0] += a, words[1] += b, words[2] += c, words[3] += d;
}

static void sha1_block(uint32_t *words, const uint8_t *block) {
    uint32_t plan[80], a = words[0], b = words[1], c = words[2], d = words[3], e = words[4];
    for (int i = 0; i < 16; i++) plan[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 80; i++) plan[i] = left(plan[i - 3] ^ plan[i - 8] ^ plan[i - 14] ^ plan[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t mixed = i < 20 ? ((b & c) | (~b & d)) + 0x5A827999 : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                       : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC : (b ^ c ^ d) + 0xCA62C1D6;
        uint32_t next = left(a, 5) + mixed + e + plan[i];
        e = d, d = c, c = left(b, 30), b = a, a = next;
    }
    words[0] += a, words[1] += b, words[2] += c, words[3] += d, words[4] += e;
}

static void sha256_block(uint32_t *words, const uint8_t *block) {
    uint32_t plan[64], state[8];
    memcpy(state, words, sizeof state);
    for (int i = 0; i < 16; i++) plan[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t x = plan[i - 15], y = plan[i - 2];
        plan[i] = plan[i - 16] + (right(x, 7) ^ right(x, 18) ^ x >> 3) + plan[i - 7] +
                  (right(y, 17) ^ right(y, 19) ^ y >> 10);
    }
    for (int i = 0; i < 64; i++) {
        uint32_t a = state[0], e = state[4];
        uint32_t first = state[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & state[5]) ^ (~e & state[6])) +
                         sha256_roots[i] + plan[i];
        uint32_t second = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
                          ((a & state[1]) ^ (a & state[2]) ^ (state[1] & state[2]));
        memmove(state + 1, state, 7 * sizeof *state);
        state[4] += first;
        state[0] = first + second;
    }
    for (int i = 0; i < 8; i++) words[i] += state[i];
}

static void take_block(Digest *digest, const uint8_t *block) {
    if (digest->kind == MD5) md5_block(digest->words, block);
    else if (digest->kind == SHA1) sha1_block(digest->words, block);
    else sha256_block(digest->words, block);
}

static void take(Digest *digest, const uint8_t *at, int64_t count) {
    digest->total += (uint64_t)count;
    if (digest->kind == CRC32) {
        digest->words[0] = crc32_more(digest->words[0], at, count);
        return;
    }
    while (count > 0) {
        if (!digest->used && count >= BLOCK) {
            take_block(digest, at);
            at += BLOCK, count -= BLOCK;
            continue;
        }
        int64_t piece = BLOCK - (int64_t)digest->used < count ? BLOCK - (int64_t)digest->used : count;
        memcpy(digest->block + digest->used, at, (size_t)piece);
        digest->used += (uint32_t)piece;
        at += piece, count -= piece;
        if (digest->used == BLOCK) {
            take_block(digest, digest->block);
            digest->used = 0;
        }
    }
}

/* The last block ends with the number of bits, in MD5 with the least byte first. */
static void end_blocks(Digest *digest) {
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = digest->total * 8;
    take(digest, padding, 1 + (BLOCK + 55 - (int64_t)digest->used) % BLOCK);
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> 8 * (digest->kind == MD5 ? i : 7 - i));
    take(digest, length, 8);
}

/* ---- for Scheme ------------------------------------------------------------------------------------------------- */

static Digest *digest_argument(Context *context, const char *who, Value v, Digest *copy) {
    Bytevector *bytes = need_bytevector(context, who, 1, v);
    if (bytes->length == (int64_t)sizeof *copy) {
        memcpy(copy, bytes->bytes, sizeof *copy);
        if (copy->kind < KINDS && copy->used < BLOCK) return copy;
    }
    esk_wrong_type(context, who, 1, v, "a digest under way");
}

static Value digest_start(Context *context, Value kind) {
    Digest digest = {.kind = (uint32_t)need_index(context, "%digest-start", 1, kind, KINDS)};
    memcpy(digest.words, first_words[digest.kind], sizeof digest.words);
    Value made = esk_make_bytevector(context, sizeof digest, 0);
    memcpy(((Bytevector *)esk_pointer(made))->bytes, &digest, sizeof digest);
    return made;
}

static Value digest_add(Context *context, Value state, Value more) {
    Digest digest;
    digest_argument(context, "%digest-add!", state, &digest);
    Bytevector *bytes = need_bytevector(context, "%digest-add!", 2, more);
    take(&digest, bytes->bytes, bytes->length);
    memcpy(((Bytevector *)esk_pointer(state))->bytes, &digest, sizeof digest);
    return ESK_UNSPECIFIED;
}

static Value digest_end(Context *context, Value state) {
    Digest digest;
    digest_argument(context, "%digest-end", state, &digest);
    if (digest.kind == CRC32) digest.words[0] = ~digest.words[0];
    else end_blocks(&digest);
    Value made = esk_make_bytevector(context, sizes[digest.kind], 0);
    uint8_t *to = ((Bytevector *)esk_pointer(made))->bytes;
    for (int i = 0; i < sizes[digest.kind]; i++)
        to[i] = (uint8_t)(digest.words[i / 4] >> 8 * (digest.kind == MD5 ? i % 4 : 3 - i % 4));
    return made;
}

static const char digits_of_64[2][65] = {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

static Value base64_text(Context *context, Value data, Value url) {
    Bytevector *bytes = need_bytevector(context, "base64-encode", 1, data);
    bool for_url = !esk_is_false(url);
    const char *digits = digits_of_64[for_url];
    int64_t count = bytes->length, whole = count / 3, left_over = count % 3;
    need_length(context, "base64-encode", whole * 4 + 4);
    int64_t length = whole * 4 + (!left_over ? 0 : for_url ? left_over + 1 : 4);
    String *string = esk_bare_string(context, length);
    const uint8_t *at = bytes->bytes;
    uint32_t *to = string->chars;
    for (int64_t i = 0; i < whole; i++, at += 3) {
        uint32_t group = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
        for (int j = 18; j >= 0; j -= 6) *to++ = (uint8_t)digits[group >> j & 63];
    }
    if (left_over) {
        uint32_t group = (uint32_t)at[0] << 16 | (left_over == 2 ? (uint32_t)at[1] << 8 : 0);
        for (int64_t j = 0; j <= left_over; j++) *to++ = (uint8_t)digits[group >> (18 - 6 * j) & 63];
        for (int64_t j = left_over; !for_url && j < 3; j++) *to++ = '=';
    }
    return esk_object(string);
}

static int value_of_64(uint32_t c) {
    if (c >= 'A' && c <= 'Z') return (int)(c - 'A');
    if (c >= 'a' && c <= 'z') return (int)(c - 'a') + 26;
    if (c >= '0' && c <= '9') return (int)(c - '0') + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static bool is_white(uint32_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* Both alphabets, with or without = at the end; white space between is skipped, all else is an error with its place. */
static Value base64_bytes(Context *context, Value text) {
    static const char who[] = "base64-decode";
    String *string = need_string(context, who, 1, text);
    int64_t digits = 0, padding = 0;
    for (int64_t i = 0; i < string->length; i++) {
        uint32_t c = string->chars[i];
        if (is_white(c)) continue;
        if (c == '=') padding++;
        else if (padding || value_of_64(c) < 0)
            esk_fail(context, ERROR_RANGE, who, padding ? "there is more behind the = of the end; at index, character"
                                                        : "this is no digit of base64; at index, character",
                     2, esk_fixnum(i), esk_char(c));
        else digits++;
    }
    if (digits % 4 == 1 || (padding && (digits + padding) % 4) || padding > 2)
        esk_fail(context, ERROR_RANGE, who, "the text ends in the middle of a byte; digits, and = behind them", 2,
                 esk_fixnum(digits), esk_fixnum(padding));
    int64_t count = digits / 4 * 3 + (digits % 4 ? digits % 4 - 1 : 0);
    Value made = esk_make_bytevector(context, count, 0);
    uint8_t *to = ((Bytevector *)esk_pointer(made))->bytes, *end = to + count;
    uint32_t bits = 0;
    int held = 0;
    for (int64_t i = 0; i < string->length; i++) {
        int value = value_of_64(string->chars[i]);
        if (value < 0) continue;
        bits = (bits << 6 | (uint32_t)value) & 0xFFFF;
        held += 6;
        if (held >= 8 && to < end) *to++ = (uint8_t)(bits >> (held -= 8));
    }
    if (bits & ((1u << held) - 1))
        esk_fail(context, ERROR_RANGE, who, "the last digit says more than whole bytes hold", 1, text);
    return made;
}

static Value hex_text(Context *context, Value data) {
    Bytevector *bytes = need_bytevector(context, "hex-encode", 1, data);
    need_length(context, "hex-encode", bytes->length * 2);
    String *string = esk_bare_string(context, bytes->length * 2);
    for (int64_t i = 0; i < bytes->length; i++) {
        string->chars[2 * i] = (uint8_t)"0123456789abcdef"[bytes->bytes[i] >> 4];
        string->chars[2 * i + 1] = (uint8_t)"0123456789abcdef"[bytes->bytes[i] & 15];
    }
    return esk_object(string);
}

static int value_of_16(uint32_t c) {
    if (c >= '0' && c <= '9') return (int)(c - '0');
    if (c >= 'a' && c <= 'f') return (int)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (int)(c - 'A') + 10 : -1;
}

static Value hex_bytes(Context *context, Value text) {
    String *string = need_string(context, "hex-decode", 1, text);
    if (string->length % 2)
        esk_fail(context, ERROR_RANGE, "hex-decode", "there is an odd number of digits", 1, esk_fixnum(string->length));
    Value made = esk_make_bytevector(context, string->length / 2, 0);
    for (int64_t i = 0; i < string->length; i++) {
        int value = value_of_16(string->chars[i]);
        if (value < 0)
            esk_fail(context, ERROR_RANGE, "hex-decode", "this is no hexadecimal digit; at index, character", 2,
                     esk_fixnum(i), esk_char(string->chars[i]));
        uint8_t *to = ((Bytevector *)esk_pointer(made))->bytes + i / 2;
        *to = (uint8_t)(*to << 4 | value);
    }
    return made;
}

const Primitive esk_digests_primitives[] = {
    ESK_PRIMITIVE_1("%digest-start", "(%digest-start kind)", digest_start,
                    "A digest under way: CRC-32 (0), MD5 (1), SHA-1 (2) or SHA-256 (3)."),
    ESK_PRIMITIVE_2("%digest-add!", "(%digest-add! digest bytes)", digest_add, "Adds bytes to a digest under way."),
    ESK_PRIMITIVE_1("%digest-end", "(%digest-end digest)", digest_end, "The digest of all that was added."),
    ESK_PRIMITIVE_2("%base64-encode", "(%base64-encode bytes url?)", base64_text,
                    "Bytes as text in base64; with the alphabet for addresses, and then without = at the end."),
    ESK_PRIMITIVE_1("%base64-decode", "(%base64-decode text)", base64_bytes, "The bytes that a text in base64 says."),
    ESK_PRIMITIVE_1("%hex-encode", "(%hex-encode bytes)", hex_text, "Bytes as hexadecimal digits."),
    ESK_PRIMITIVE_1("%hex-decode", "(%hex-decode text)", hex_bytes, "The bytes that hexadecimal digits say."),
    {0},
};
