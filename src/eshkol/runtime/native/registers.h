/* What is written of registers that hold several numbers, for GCC and Clang alike. */
#ifndef ESHKOL_REGISTERS_H
#define ESHKOL_REGISTERS_H

#define ALWAYS __attribute__((always_inline))

/* Lanes of two registers, by constants: those of the second are counted behind those of the first. V is a register of
   whole numbers as large as theirs. */
#if defined(__clang__)
#define LANES_OF(V, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define LANES_OF(V, x, y, ...) __builtin_shuffle(x, y, (V){__VA_ARGS__})
#endif

/* F of each lane and of n, with commas between. */
#define LIST_2(F, n) F(0, n), F(1, n)
#define LIST_4(F, n) LIST_2(F, n), F(2, n), F(3, n)
#define LIST_8(F, n) LIST_4(F, n), F(4, n), F(5, n), F(6, n), F(7, n)
#define LIST_16(F, n) \
    LIST_8(F, n), F(8, n), F(9, n), F(10, n), F(11, n), F(12, n), F(13, n), F(14, n), F(15, n)

#endif
