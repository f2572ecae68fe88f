/* Registers beside each other, turned over as a matrix. Included for each type of numbers, of which there are given:
   the bytes (BYTES) of one and of a register (VECTOR), LANES, UNROLL, the registers NAMED(Vector), and
   NAMED(BitsVector), of whole numbers as large. */

#undef EACH_LANE
#if VECTOR / BYTES == 16
#define EACH_LANE LIST_16
#elif VECTOR / BYTES == 8
#define EACH_LANE LIST_8
#elif VECTOR / BYTES == 4
#define EACH_LANE LIST_4
#else
#define EACH_LANE LIST_2
#endif

/* Lanes of two registers, of which blocks of so many lanes beside the diagonal are exchanged. */
#define KEPT_LANE(lane, apart) ((lane) & (apart) ? (int)LANES + (lane) - (apart) : (lane))
#define MOVED_LANE(lane, apart) ((lane) & (apart) ? (int)LANES + (lane) : (lane) + (apart))
#define EXCHANGED(apart)                                                                               \
    UNROLL                                                                                             \
    for (int i = 0; i < (int)LANES; i++)                                                               \
        if (!(i & (apart))) {                                                                          \
            const NAMED(Vector) one = x[i], other = x[i + (apart)];                                    \
            x[i] = LANES_OF(NAMED(BitsVector), one, other, EACH_LANE(KEPT_LANE, apart));               \
            x[i + (apart)] = LANES_OF(NAMED(BitsVector), one, other, EACH_LANE(MOVED_LANE, apart));    \
        }

/* As many registers as they have lanes become their transpose. */
static inline ALWAYS void NAMED(turn_registers)(NAMED(Vector) *x)
{
    EXCHANGED(1)
#if VECTOR / BYTES > 2
    EXCHANGED(2)
#endif
#if VECTOR / BYTES > 4
    EXCHANGED(4)
#endif
#if VECTOR / BYTES > 8
    EXCHANGED(8)
#endif
}

#undef EXCHANGED
